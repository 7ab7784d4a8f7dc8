"""After flattening: equal types become one, and every type gets the name a person would give it."""
