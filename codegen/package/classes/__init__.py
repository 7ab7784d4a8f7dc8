"""The classes of model modules: datamodel-code-generator writes them, and what it cannot express is edited into its text."""
