# mpi.sh - processes that Open MPI and MPICH start talk through these: the same weights, and one sentence where one of them fails.
#
# When: released. MPI libraries keep memory to the end.
# Each of the two that is here is tried; which is not is said. Debian: apt-get install openmpi-bin mpich.
. "$VWN_SOURCE/tests/support/lib.inc"
squares > text.txt
small_model '' '  embed tokens { vocab = 256, width = D }
  attention { heads = 2 }
  head lm { norm = rms_norm(eps = 1e-6), tie = tokens }' > model.vwn
small_train 'lanes = 4
length = 3 steps
clip = 1.0
average = ema(decay = 0.9)
optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }
eval { every = 2 steps, batches = 1 }
checkpoint { every = 1 steps, keep = 9 }' >> model.vwn
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1
expect 0 "$VWN" train model.vwn --device reference --run one
found=0
for mpi in openmpi mpich; do
    command -v mpirun.$mpi > /dev/null || { echo "skipped: there is no mpirun.$mpi here"; continue; }
    found=$((found + 1))
    for n in 2 4; do
        expect 0 timeout 60 mpirun.$mpi -n $n "$VWN" train model.vwn --device reference --run $mpi$n
        cmp runs/one/ckpt/step_00000003.safetensors runs/$mpi$n/ckpt/step_00000003.safetensors || fail "$n processes of $mpi have other weights than one"
        [ "$(grep -c 'Training' err)" -eq 1 ] || fail "$n processes of $mpi say what they do $(grep -c 'Training' err) times"
    done
    # who fails says so to all
    last="mpirun.$mpi -n 2 vwn train where a run is"
    timeout 60 mpirun.$mpi -n 2 "$VWN" train model.vwn --device reference --run ${mpi}4 > out 2> err < /dev/null && fail "$last: no failure"
    has err 'already holds a run'
    [ "$(grep -c '^error' err)" -eq 1 ] || fail "not one sentence"
done
# a launcher whose MPI is not here
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 VWN_MPI=libno.so expect 5 "$VWN" train model.vwn --run no
has err 'OMPI_COMM_WORLD_SIZE says that 2 processes work together, and their MPI cannot be opened'
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 VWN_MPI=libm.so.6 expect 5 "$VWN" train model.vwn --run no
has err 'libm.so.6 is no MPI: it has no MPI_Init_thread'
[ $found -gt 0 ] || [ $failures -gt 0 ] || exit 77
finish
