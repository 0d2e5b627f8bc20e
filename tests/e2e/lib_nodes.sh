# Two nodes on one machine, for scripts that source this: network namespaces without names, joined
# by a veth pair. They end with the processes that hold them, so nothing is left behind.
#   make_nodes DIR    needs root; sets NODE_A NODE_B (their addresses), NODE_AGENT (a remote shell in
#                     DIR: NODE_AGENT HOST COMMAND...), NODE_INTERFACE; status 77 where it is not allowed
#   on_node HOST COMMAND...
#   end_nodes
# Each node has a host name and a network of its own; processes and files they share.

NODE_A=10.213.77.1
NODE_B=10.213.77.2
NODE_INTERFACE=haul0
node_holders=()

make_nodes() {
  local dir=$1 tool
  if [ "$(id -u)" != 0 ]; then echo "skipped: making network namespaces takes root"; return 77; fi
  for tool in ip unshare nsenter hostname; do
    command -v $tool > /dev/null || { echo "skipped: $tool is missing; install iproute2 and util-linux"; return 77; }
  done
  local name
  for name in a b; do
    mkfifo "$dir/node-$name"
    # Says that it is there, then sleeps until it is ended.
    unshare --net --uts sh -c "hostname haul-node-$name; echo > '$dir/node-$name'; exec sleep 100000" &
    node_holders+=($!)
    # Opened for both ways, so that a holder that failed is no reason to wait.
    if ! { read -r -t 10 <> "$dir/node-$name"; }; then
      echo "skipped: network namespaces are not allowed here"; end_nodes; return 77
    fi
  done
  # The pair is made within the first namespace, so its name clashes with nobody's.
  if ! nsenter -t "${node_holders[0]}" -n ip link add $NODE_INTERFACE type veth \
    peer name $NODE_INTERFACE netns "${node_holders[1]}"; then
    echo "skipped: veth interfaces are not allowed here"; end_nodes; return 77
  fi
  local holder address
  for holder in 0 1; do
    address=$([ $holder = 0 ] && echo $NODE_A || echo $NODE_B)
    nsenter -t "${node_holders[$holder]}" -n sh -c "ip addr add $address/24 dev $NODE_INTERFACE &&
      ip link set $NODE_INTERFACE up && ip link set lo up" || { end_nodes; return 1; }
  done
  # libfabric leaves out interfaces that are not running, which takes them a moment.
  for holder in 0 1; do
    for _ in $(seq 100); do
      nsenter -t "${node_holders[$holder]}" -n ip -o link show dev $NODE_INTERFACE | grep -q 'state UP' && break
      sleep 0.1
    done
  done
  NODE_AGENT=$dir/node-agent
  # What ssh would do: options, a host, and words for its shell.
  cat > "$NODE_AGENT" << AGENT
#!/bin/sh
while :; do case \$1 in -*) shift ;; *) break ;; esac; done
case \$1 in
  $NODE_A | haul-node-a) holder=${node_holders[0]} ;;
  $NODE_B | haul-node-b) holder=${node_holders[1]} ;;
  *) echo "there is no node \$1" >&2; exit 1 ;;
esac
shift
exec nsenter -t \$holder -n -u -- sh -c "\$*"
AGENT
  chmod 755 "$NODE_AGENT"
}

on_node() {
  local holder=${node_holders[0]}
  [ "$1" = $NODE_A ] || holder=${node_holders[1]}
  shift
  nsenter -t "$holder" -n -u -- "$@"
}

end_nodes() {
  [ ${#node_holders[@]} = 0 ] || kill "${node_holders[@]}" 2> /dev/null
  node_holders=()
}
