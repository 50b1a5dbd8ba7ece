r"""What the names in a YAML stand for: attentions, masks, layers, encoders and networks."""
