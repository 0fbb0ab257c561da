"""What every room may use: files, checkpoints, progress, devices, randomness."""
