"""Tools described elsewhere than in spec files, read as if they were."""
