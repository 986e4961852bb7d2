"""Somebody's own files as arrays: .npz, .npy, .csv and images."""
