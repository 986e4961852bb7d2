"""Training and host: data, PyTorch networks, ensembles, export."""
