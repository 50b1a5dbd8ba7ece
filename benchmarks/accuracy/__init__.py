r"""What a mask gains: the same network with a mask, without one, and with other attentions and message passing."""
