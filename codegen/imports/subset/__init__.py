"""Whether everything that one JSON Schema accepts is accepted by another: proven, or where the proof fails."""
