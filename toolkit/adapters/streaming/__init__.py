"""What all adapters share to put streamed answers together."""
