"""Whether everything one JSON Schema accepts is accepted by another: proven, or told where the proof fails."""
