"""Trains models as people do it, and times it: a process a row (facts/bench.py), one row after the other.

The models are lists of layers (models.py). A style (session, keras, torch, jax) interprets them; it is a
package of this folder that can be imported without its framework:
  FRAMEWORK      what a row's process imports: "tensorflow", "torch" or "jax"
  environ(row)   variables of the environment that a row's process is started with: {name: value}
  build(framework, row, place)  the Training of a row. row: a BenchRow as a dictionary, with every field.
                 place: a styles.Place, which says where it runs. Raises NotSupported
                 (kernels.failures) for what this version, build or device does not have.

A Training has:
  parameters     how many trainable parameters it has, counted in the framework's own objects
  run(steps)     trains so many steps on ``batch`` samples each, waits until the device has done them, and
                 returns how many of them the loss scaler skipped. Nothing but the plain loop of the
                 framework's users: this is what is timed
  loss()         the last step's loss, as a float
  evidence()     what shows whether the mode engaged, asked once, after the warm-up: {name: count, type, bits}
  memory()       {"tensors_mib": peak, "pool_mib": peak}, as far as the framework reports them
and, in a job of several processes, agree(number): the first process's number.
"""
