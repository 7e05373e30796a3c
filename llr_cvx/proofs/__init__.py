"""What a dual point proves about any W: bounds, certificates, ball arithmetic, files."""
