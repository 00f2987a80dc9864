"""What several test rooms share: generated packages, built wheels, scripted environments."""
