# What the compute benches share, sourced by them: two threads, f32, batches in memory, images per second.
# pair MODEL MODE BATCH IMAGE PEER sets both sides; PEER is one of the peers of bench/peers:
#   torch   PyTorch as installed
#   tuned   PyTorch with glibc told to keep memory (huge pages, nothing handed back)
#   nhwc    tuned, in PyTorch's channels_last layout
#   compile tuned, torch.compile; features with frozen weights
#   keras   Keras on TensorFlow, the networks of keras.applications
#   ddp     tuned, two processes of one thread each over gloo (training)
# Which of them is the best differs between machines: bench/peers/compute_table.sh runs all.
unit="images/s"
better=higher
figure='"images_per_second": ([0-9.]+)'
ours_name="tandem"
pair() { # model mode batch image peer
    local classes=1000 script=compute_torch.py options=--tuned
    [ "$1" = lenet5 ] && classes=10
    case $5 in
    torch) options='' peer_name="PyTorch as installed" ;;
    tuned) peer_name="PyTorch, memory kept" ;;
    nhwc) options="--tuned --nhwc" peer_name="PyTorch, memory kept, channels last" ;;
    compile) options="--tuned --compile" peer_name="torch.compile" ;;
    keras) script=compute_keras.py options='' peer_name="Keras" ;;
    ddp) script=compute_ddp.py peer_name="PyTorch, 2 DDP processes" ;;
    esac
    title="$1, $2, batch $3, $4 px, two threads, f32, against $peer_name"
    ours="\"\$TANDEM\" bench compute --model $1 --mode $2 --batch $3 --image $4 --classes $classes"
    ours="$ours --precision f32 --threads 2 --seconds 9 --json"
    peer="\"\$PEER_PYTHON\" \"\$ROOT/bench/peers/$script\" $1 $2 $3 $4 $options --seconds 6"
}
