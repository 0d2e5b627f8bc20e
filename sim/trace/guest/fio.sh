# File writes as iozone3's write and rewrite: a file of 4 MB, new and then once more, 4 KB at a time, on
# ext3, an fsync after each pass so that the disk's DMA happens; then again with another new file.
run_machine() {
  mount -t ext3 /dev/vdc /mnt || fail "the disk for fio does not mount"
  # 8 MB of writes into 4 MB begin again at the file's start: the rewrite.
  fio --name=write --directory=/mnt --filename=file --ioengine=psync --rw=write --bs=4k --size=4m --io_size=8m \
    --fsync=1024 --loops=1000000 --unlink_each_loop=1 --fallocate=none --gtod_reduce=1 --thread=1 \
    --output=/tmp/fio.log &
  fio=$!
  tries=0
  until [ -e /mnt/file ]; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || fail "fio makes no file"
    usleep 20000
  done
  sleep 1
  kill -0 $fio 2> /dev/null || { cat /tmp/fio.log; fail "fio ended early"; }
  mark
  wait $fio
  cat /tmp/fio.log
}
