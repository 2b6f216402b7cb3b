"""What replicas of a TensorFlow strategy make of the numbers that they give to a variable and to a sum."""


def reduce(tf, strategy, first, number, length):
    """(the variable, its value in each replica of this process, [(least, most) of a replica's sums]).

    first: the variable's first value. number(context): what a replica gives. length: how many sums.
    """
    with strategy.scope():
        weight = tf.Variable(first, aggregation=tf.VariableAggregation.SUM, dtype=tf.float32)

    def replica():
        context = tf.distribute.get_replica_context()
        given = number(context)
        weight.assign_add(given)
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.fill([length], given))
        return tf.reduce_min(total), tf.reduce_max(total)

    run = getattr(strategy, "run", None) or strategy.experimental_run_v2
    mine = strategy.experimental_local_results
    least, most = tf.function(lambda: run(replica))()
    sums = [(float(low), float(high)) for low, high in zip(mine(least), mine(most))]
    return weight, [float(one.numpy()) for one in mine(weight)], sums
