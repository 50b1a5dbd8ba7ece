r"""The objects behind the names in a YAML: attentions, masks, layers, encoders and networks."""
