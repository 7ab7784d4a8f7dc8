"""The texts of the generated modules. Every value from a spec is written as a literal, never as code."""
