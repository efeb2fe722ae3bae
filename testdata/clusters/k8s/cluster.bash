#!/usr/bin/env bash
# What build, up, down, with and ctl share: where things lie in a cluster's
# directory, and how its daemons are started, asked and ended. To be sourced.
#
# A daemon's pid is in run/NAME.pid. It counts only while that process carries the
# ASSAY_K8S_CLUSTER of this cluster, because numbers of processes are used again,
# and the environment of a zombie is empty.

# A daemon that crashes leaves no core where it happened to be started.
ulimit -c 0

NODE=node1

clusters=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
archive=$clusters/../../../deploy/k8s/runner/archive

say() { echo "kubernetes cluster: $*" >&2; }
die() {
	say "$*"
	exit 1
}

# cache prints where build leaves what it makes.
cache() {
	local version home=~
	version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[^ ]*\).*/\1/p' "$clusters/module/kubernetes/go.mod")
	echo "${CACHE:-${XDG_CACHE_HOME:-$home/.cache}/assay-k8s/$version}"
}

# enter DIR makes an existing cluster the one that the functions below mean. NET is
# the second number of its addresses: see the table in README.md.
enter() {
	DIR=$1
	NET=$(cat "$DIR/net")
	IP=10.$NET.0.1
	SERVICES=10.$((NET + 1)).0.0/16
	LINK=assayk$NET # the host's end of the cable, the cgroup, and the pods' network
	SOCKET=$DIR/run/containerd.sock
	export KUBECONFIG=$DIR/admin.kubeconfig
	export PATH=$DIR/bin:/usr/sbin:/sbin:/usr/bin:/bin:$PATH
}

daemons() { printf '%s\n' etcd kube-apiserver containerd kube-controller-manager kube-scheduler kubelet coredns kube-proxy; }

known() { daemons | grep -xF -e "$1" >/dev/null || die "no daemon $1: there are $(daemons | xargs)"; }

pid_of() {
	local p
	p=$(cat "$DIR/run/$1.pid" 2>/dev/null) || return 1
	grep -qzxF "ASSAY_K8S_CLUSTER=$DIR" "/proc/$p/environ" 2>/dev/null && echo "$p"
}

alive() { pid_of "$1" >/dev/null; }

# inside COMMAND… runs it in the network of the cluster.
inside() { nsenter --net="$DIR/run/net" "$@"; }

images() { ctr --address "$SOCKET" --namespace k8s.io images "$@"; }

# launch NAME starts a daemon that is not running, and does not wait for it.
launch() {
	local name=$1 pki=$DIR/pki cmd
	# With the default of 20 requests a second the controllers need 4 s to start.
	local client=(--leader-elect=false --bind-address 127.0.0.1 --kube-api-qps 1000 --kube-api-burst 1000)
	! alive "$name" || return 0
	case $name in
	etcd) cmd=(etcd --data-dir "$DIR/etcd" --unsafe-no-fsync --log-level warn) ;;
	kube-apiserver) cmd=(kube-apiserver --etcd-servers http://127.0.0.1:2379
		--bind-address "$IP" --advertise-address "$IP" --cert-dir "$pki" --allow-privileged
		--token-auth-file "$pki/tokens.csv" --authorization-mode "Node,RBAC" --enable-admission-plugins NodeRestriction
		--service-cluster-ip-range "$SERVICES" --service-account-issuer https://kubernetes.default.svc
		--service-account-key-file "$pki/accounts.key" --service-account-signing-key-file "$pki/accounts.key"
		--kubelet-preferred-address-types InternalIP
		--audit-policy-file "$DIR/audit.yaml" --audit-log-path "$DIR/log/audit.log" --audit-log-mode blocking) ;;
	containerd) cmd=(containerd --config "$DIR/containerd.toml") ;;
	kube-controller-manager) cmd=(kube-controller-manager --kubeconfig "$DIR/controllers.kubeconfig"
		--use-service-account-credentials --service-account-private-key-file "$pki/accounts.key"
		--root-ca-file "$pki/apiserver.crt" --cert-dir "$pki/controllers" "${client[@]}") ;;
	kube-scheduler) cmd=(kube-scheduler --kubeconfig "$DIR/scheduler.kubeconfig" --cert-dir "$pki/scheduler" "${client[@]}") ;;
	kubelet) cmd=(kubelet --config "$DIR/kubelet.yaml" --kubeconfig "$DIR/kubelet.kubeconfig" --hostname-override "$NODE"
		--node-ip "$IP" --root-dir "$DIR/kubelet" --cert-dir "$DIR/kubelet/pki") ;;
	coredns) cmd=(coredns -conf "$DIR/Corefile") ;;
	kube-proxy) cmd=(kube-proxy --kubeconfig "$DIR/proxy.kubeconfig" --hostname-override "$NODE" --proxy-mode nftables
		--cluster-cidr "10.$NET.0.0/24" --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0
		--conntrack-tcp-timeout-close-wait 0) ;;
	esac
	ASSAY_K8S_CLUSTER=$DIR setsid nsenter --net="$DIR/run/net" "${cmd[@]}" </dev/null >>"$DIR/log/$name.log" 2>&1 9>&- &
	echo $! >"$DIR/run/$name.pid"
}

# answers NAME says whether a daemon does its work, or at least listens.
answers() {
	case $1 in
	etcd) listens 127.0.0.1 2379 ;;
	kube-apiserver) timeout 10 kubectl get --raw /readyz ;;
	containerd) timeout 10 ctr --address "$SOCKET" version ;;
	kube-controller-manager) listens 127.0.0.1 10257 ;;
	kube-scheduler) listens 127.0.0.1 10259 ;;
	kubelet) listens 127.0.0.1 10248 ;;
	coredns) listens "$IP" 53 ;;
	kube-proxy) listens 127.0.0.1 10249 ;;
	esac
}

listens() { inside timeout 5 bash -c ": </dev/tcp/$1/$2"; }

# await NAME waits until a daemon answers.
await() {
	local name=$1
	until_true 120 "$name" answers "$name"
}

# until_true SECONDS NAME COMMAND… waits for COMMAND to succeed, as long as the daemon
# NAME lives; what both said is printed when that is in vain.
until_true() {
	local limit=$1 name=$2 begin=$SECONDS
	shift 2
	until "$@" >"$DIR/run/$name.asked" 2>&1; do
		if ((SECONDS - begin > limit)) || { ((SECONDS - begin > 5)) && ! alive "$name"; }; then
			say "$name did not come up; asked by ${*}, it said:"
			cat "$DIR/run/$name.asked" >&2
			say "the end of its log:"
			tail -n 20 "$DIR/log/$name.log" >&2
			exit 1
		fi
		sleep 0.05
	done
}

# end SIGNAL NAME ends a daemon, at last by force; its containers go on.
end() {
	local p i
	if p=$(pid_of "$2"); then
		kill "-$1" "$p" 2>/dev/null || true
		for ((i = 0; i < 100; i++)); do
			alive "$2" || break
			if ((i == 80)); then kill -KILL "$p" 2>/dev/null || true; fi
			sleep 0.1
		done
	fi
	rm -f "$DIR/run/$2.pid"
}

# cgroups lists the cluster's cgroup in every hierarchy that there is, of version 1
# or 2.
cgroups() {
	local c
	for c in /sys/fs/cgroup /sys/fs/cgroup/*; do
		if [ -e "$c/cgroup.procs" ] && ! [ -e "$c/../cgroup.procs" ]; then echo "$c/$LINK"; fi
	done
}

# load IMAGE.tar… imports images that the cluster does not have yet.
load() {
	local file sum
	for file in "$@"; do
		sum=$(sha256sum <"$file" | cut -d' ' -f1)
		[ ! -e "$DIR/run/loaded-$sum" ] || continue
		images import "$file" >"$DIR/run/import" 2>&1 || {
			cat "$DIR/run/import" >&2
			die "could not import $file"
		}
		touch "$DIR/run/loaded-$sum"
	done
}

# load_runner BINARY imports the image of a static assay as localhost/assay-runner:test.
load_runner() {
	"$1" version >/dev/null || die "$1 does not run"
	"$archive" localhost/assay-runner:test "$1" "$DIR/run/runner.tar"
	images import "$DIR/run/runner.tar" >/dev/null
}

# logs [LINES] prints the ends of the daemons' logs.
logs() {
	local name
	for name in $(daemons); do
		[ -s "$DIR/log/$name.log" ] || continue
		echo "--- log/$name.log"
		tail -n "${1:-30}" "$DIR/log/$name.log" | cut -c1-600
	done
}

# descendants PID… lists the processes and everything below them.
descendants() {
	local p
	for p in "$@"; do
		echo "$p"
		# shellcheck disable=SC2046 # one word a child
		descendants $(cat "/proc/$p/task/"*/children 2>/dev/null)
	done
}

# write_kubeconfig SERVER CERTIFICATE TOKEN [NAMESPACE] prints one with the context assay.
write_kubeconfig() {
	cat <<-KUBECONFIG
		apiVersion: v1
		kind: Config
		clusters: [{name: assay, cluster: {server: "$1", certificate-authority: "$2"}}]
		users: [{name: assay, user: {token: "$3"}}]
		contexts: [{name: assay, context: {cluster: assay, user: assay, namespace: "${4:-default}"}}]
		current-context: assay
	KUBECONFIG
}
