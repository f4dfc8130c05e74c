# Functions of bench/run and bench/scaling: how much of the CPUs' time a hypervisor gave to others.

# Clock ticks in which the CPUs worked, and those in which they could not because others did.
cpu_times() {
    awk 'NR == 1 { print $2 + $3 + $4 + $7 + $8, $9 }' /proc/stat
}

# Percent of the time that others had since cpu_times said this.
stolen_since() { # cpu_times
    { echo "$1"; cpu_times; } | awk 'NR == 1 { worked = $1; stolen = $2; next }
        { worked = $1 - worked; stolen = $2 - stolen; printf "%.1f\n", 100 * stolen / (worked + stolen + !worked) }'
}

is_at_most() { # number most
    awk -v number="$1" -v most="$2" 'BEGIN { exit !(number <= most) }'
}
