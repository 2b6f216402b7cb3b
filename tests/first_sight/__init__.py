"""Reports and faults that the checks had never seen when the doctor first looked at them."""
