"""What decoders and accumulators share to make a result of an answer."""
