"""What every room may use: files, checkpoints, progress, devices, compiled functions, randomness."""
