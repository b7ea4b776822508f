"""Parts of a model, or all of it, as operators of PyTorch, written by `vwn emit torch`.

    Model()               an nn.Module: model(tokens) -> logits, model(tokens, labels) -> the loss
    Block(path)           a module of the model: block(x) -> y; of --block
    Connection(path)      read(state) -> x, write(state, y) -> state; of --node, as the next two
    Open(), Close()       the first state of an embedding; what a head is given of the last state
    Connections(layers)   a list of layers with a connection around each, opened and closed
    load(module, file)    parameters from a run of vwn, or one of its checkpoints
    save(module, file)    as a .safetensors file that `start_from` of a .vwn file reads
    describe()            the modules with their shapes, as text
"""

from ._op import Block, Close, Connection, Connections, Model, Open, describe, load, paths, save, tensors

__all__ = [
    "Block",
    "Close",
    "Connection",
    "Connections",
    "Model",
    "Open",
    "describe",
    "load",
    "paths",
    "save",
    "tensors",
]
