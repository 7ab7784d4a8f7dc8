"""Images, files, audio and video: what they are, and where each provider takes them."""
