#!/usr/bin/env bash
# What up, down and with share: where things lie in a directory, and how its
# daemons are started, asked and ended. To be sourced.
#
# A daemon's pid is in run/NAME.pid. It counts only while that process carries
# the name of the directory in its environment, because numbers of processes are
# used again.

# A daemon that crashes leaves no core where it happened to be started.
ulimit -c 0

say() { echo "docker: $*" >&2; }
die() {
	say "$*"
	exit 1
}

# enter DIR makes an existing directory the one that the functions below mean.
enter() {
	DIR=$1
	export DOCKER_HOST=unix://$DIR/docker.sock DOCKER_CONFIG=$DIR/config
	unset DOCKER_CONTEXT DOCKER_TLS_VERIFY DOCKER_CERT_PATH
}

known() { [ -e "$1/configured" ]; }

# client asks the daemon, with the program of the Debian package, which its age fits.
client() { timeout 30 "$DIR/bin/docker" "$@"; }

daemons() { printf '%s\n' dockerd registry; }

# ours lists the processes that carry the name of the directory: dockerd, its
# containerd and the shims of that, and the registry.
ours() {
	local f
	grep -lzxF "ASSAY_DOCKER_DIR=$DIR" /proc/[0-9]*/environ 2>/dev/null | while read -r f; do
		f=${f#/proc/}
		echo "${f%/environ}"
	done
}

pid_of() {
	local p
	p=$(cat "$DIR/run/$1.pid" 2>/dev/null) || return 1
	grep -qzxF "ASSAY_DOCKER_DIR=$DIR" "/proc/$p/environ" 2>/dev/null && echo "$p"
}

alive() { pid_of "$1" >/dev/null; }

# launch NAME starts a daemon that is not running, and does not wait for it. Bridges
# and the packet filter stay as they are: containers are alone, or on the host's network.
launch() {
	local name=$1 cmd
	alive "$name" && return
	case $name in
	dockerd)
		end_rest
		# It would refuse to start, or not start its containerd, while one of these names a process.
		rm -f "$DIR/run/dockerd.own" "$DIR/exec/containerd/containerd.pid"
		cmd=(/usr/sbin/dockerd --config-file="$DIR/daemon.json" --host="$DOCKER_HOST" --pidfile="$DIR/run/dockerd.own"
			--data-root="$DIR/data" --exec-root="$DIR/exec"
			--bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false)
		;;
	registry) cmd=(/usr/bin/docker-registry serve "$DIR/registry.yml") ;;
	esac
	ASSAY_DOCKER_DIR=$DIR setsid "${cmd[@]}" </dev/null >>"$DIR/log/$name.log" 2>&1 9>&- &
	echo $! >"$DIR/run/$name.pid"
}

answers() {
	case $1 in
	dockerd) client version ;;
	registry) (exec 3<>"/dev/tcp/127.0.0.1/$(cat "$DIR/port")") ;;
	esac
}

# await NAME waits until a daemon answers, and gives up when it ended.
await() {
	local begin=$SECONDS
	until answers "$1" >"$DIR/log/await-$1.out" 2>&1; do
		if ((SECONDS - begin > 60)) || ! alive "$1"; then
			say "$1 did not come up; the end of its log:"
			tail -n 20 "$DIR/log/$1.log" >&2
			exit 1
		fi
		sleep 0.05
	done
}

# stop NAME ends a daemon as an administrator would, or at last by force.
stop() {
	local p i
	if p=$(pid_of "$1"); then
		kill "$p"
		for ((i = 0; i < 150; i++)); do
			alive "$1" || break
			sleep 0.1
		done
		! alive "$1" || kill -KILL "$p"
	fi
	rm -f "$DIR/run/$1.pid"
}

# remove_containers ends what runs in them too.
remove_containers() {
	local ids
	mapfile -t ids < <(client ps --all --quiet --no-trunc)
	((${#ids[@]} == 0)) || client rm --force "${ids[@]}" >/dev/null
}

# end_rest kills what a dockerd that died without warning left behind: containerd, its
# shims, and what runs in containers, which are the children of shims.
end_rest() {
	local found
	mapfile -t found < <(ours | grep -vxF -e "$(pid_of registry || echo none)")
	((${#found[@]})) || return 0
	mapfile -t found < <(descendants "${found[@]}")
	kill -KILL "${found[@]}" 2>/dev/null
	sleep 0.1
}

# unmount ends the mounts below the directory, the innermost first.
unmount() {
	local m
	awk -v dir="$DIR/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r m; do
		umount --lazy "$m"
	done
}

# logs [LINES] prints the ends of the daemons' logs.
logs() {
	local name
	for name in $(daemons); do
		[ -s "$DIR/log/$name.log" ] || continue
		echo "--- log/$name.log"
		tail -n "${1:-30}" "$DIR/log/$name.log"
	done
}

# descendants PID… lists the processes and everything below them.
descendants() {
	ps -e -o pid=,ppid= | awk -v roots="$*" '
		BEGIN { n = split(roots, r, " "); for (i = 1; i <= n; i++) in_tree[r[i]] = 1 }
		{ parent[$1] = $2 }
		END {
			do { grew = 0; for (p in parent) if (!(p in in_tree) && (parent[p] in in_tree)) { in_tree[p] = 1; grew = 1 } } while (grew)
			for (p in in_tree) print p
		}'
}
