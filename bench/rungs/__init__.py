"""The parts of bench/ladder, one module each: measure(work, …) gives a result, lines(result) a table of it."""
