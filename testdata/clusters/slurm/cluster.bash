#!/usr/bin/env bash
# What up, down, with and ctl share: where things lie in a cluster's directory,
# and how its daemons are started, asked and ended. To be sourced.
#
# A daemon's pid is in run/NAME.pid. It counts only while that process carries
# the SLURM_CONF of this cluster, because numbers of processes are used again,
# and the environment of a zombie is empty.

# A pipe into grep does not use -q: it would end the writer with SIGPIPE, and
# pipefail would call that a failure.

# A daemon that crashes leaves no core where it happened to be started.
ulimit -c 0

say() { echo "slurm cluster: $*" >&2; }
die() {
	say "$*"
	exit 1
}

# enter DIR makes an existing cluster the one that the functions below mean.
enter() {
	DIR=$1
	export SLURM_CONF=$DIR/slurm.conf
	export MYSQL_UNIX_PORT=$DIR/run/mysql.sock # where slurmdbd finds MariaDB
	unset SLURM_JWT SLURM_CLUSTERS             # would send the questions below elsewhere
}

# conf KEY prints a value of slurm.conf.
conf() { sed -n "s/^$1=//p" "$SLURM_CONF"; }

nodes() { sed -n 's/^NodeName=\([^ ]*\) .*/\1/p' "$SLURM_CONF"; }

accounted() { [ "$(conf AccountingStorageType)" = accounting_storage/slurmdbd ]; }

# daemons lists the names in the order in which they start.
daemons() {
	echo munged
	if accounted; then printf '%s\n' mariadbd slurmdbd; fi
	printf '%s\n' slurmctld slurmrestd
	nodes
}

known() { daemons | grep -xF -e "$1" >/dev/null || die "no daemon $1 in $DIR: there are $(daemons | xargs)"; }

pid_of() {
	local p
	p=$(cat "$DIR/run/$1.pid" 2>/dev/null) || return 1
	grep -qzxF "SLURM_CONF=$SLURM_CONF" "/proc/$p/environ" 2>/dev/null && echo "$p"
}

alive() { pid_of "$1" >/dev/null; }

# launch NAME starts a daemon that is not running, and does not wait for it.
launch() {
	local name=$1 run=$DIR/run cmd
	alive "$name" && return
	case $name in
	munged) cmd=(munged --foreground --force --key-file="$DIR/munge.key" --socket="$run/munge.sock"
		--pid-file="$run/munged.own" --seed-file="$run/munged.seed") ;;
	mariadbd) cmd=(mariadbd --no-defaults --user=root --datadir="$DIR/db" --socket="$MYSQL_UNIX_PORT"
		--skip-networking --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=2) ;;
	slurmdbd) cmd=(slurmdbd -D) ;;
	slurmctld) cmd=(slurmctld -D) ;;
	slurmrestd)
		# It must not be the user of SLURM; SLURM_JWT makes it ask with its clients' tokens.
		cmd=(env SLURM_JWT=daemon slurmrestd -u daemon -g daemon -a rest_auth/jwt)
		accounted || cmd+=(-s "openapi/v0.0.36,openapi/v0.0.37,openapi/v0.0.38") # not those of slurmdbd
		cmd+=("127.0.0.1:$(($(conf SlurmctldPort) + 2))")
		;;
	*)
		launch_node "$name"
		return
		;;
	esac
	setsid "${cmd[@]}" </dev/null >>"$DIR/log/$name.out" 2>&1 9>&- &
	echo $! >"$run/$name.pid"
}

# launch_node NODE starts a slurmd. One that crashes by itself is started again, and
# the log says so: under many jobs at once, slurmd 22.05 sometimes finds its heap
# damaged. One that was ended stays so.
launch_node() {
	local pid=$DIR/run/$1.pid
	rm -f "$pid"
	# shellcheck disable=SC2016 # it is the inner shell that expands
	setsid bash -c '
		while :; do
			slurmd -D -N "$1" &
			echo $! >"$2.new" && mv "$2.new" "$2"
			code=0
			wait $! || code=$?
			case $code in
			134 | 135 | 139) echo "cluster: slurmd of $1 crashed ($code) and is started again" ;;
			*) break ;;
			esac
		done' keeper "$1" "$pid" </dev/null >>"$DIR/log/$1.out" 2>&1 9>&- &
	for _ in {1..100}; do
		[[ ! -e $pid ]] || return 0
		sleep 0.05
	done
}

# answers NAME says whether a daemon does its work.
answers() {
	case $1 in
	munged) munge --no-input --socket="$DIR/run/munge.sock" ;;
	mariadbd) mariadb --no-defaults --socket="$MYSQL_UNIX_PORT" --execute='select 1' ;;
	slurmdbd) timeout 20 sacctmgr --noheader show cluster ;;
	slurmctld) timeout 20 scontrol ping | grep -w UP ;;
	slurmrestd) (exec 3<>"/dev/tcp/127.0.0.1/$(($(conf SlurmctldPort) + 2))") ;;
	*) # without a controller nobody can tell
		alive slurmctld || return 0
		! timeout 20 sinfo --noheader --Node --nodes="$1" --format=%T | grep -E '\*|down|unk|inval' ;;
	esac
}

# await NAME waits until a daemon answers, and gives up when it ended.
await() {
	local name=$1 begin=$SECONDS
	until answers "$name" >"$DIR/log/await-$name.out" 2>&1; do
		if ((SECONDS - begin > 120)) || { ((SECONDS - begin > 5)) && ! alive "$name"; }; then
			say "$name did not come up; asked, it said:"
			cat "$DIR/log/await-$name.out" >&2
			say "the end of its log:"
			tail -n 20 "$DIR/log/$name.out" >&2
			exit 1
		fi
		sleep 0.05
	done
}

# stop NAME ends a daemon as an administrator would, or at last by force.
stop() {
	local p
	if p=$(pid_of "$1"); then
		kill "$p"
		gone "$1" 100 || kill -KILL "$p"
	fi
	rm -f "$DIR/run/$1.pid"
}

gone() {
	local i
	for ((i = 0; i < $2; i++)); do
		alive "$1" || return 0
		sleep 0.1
	done
	return 1
}

# stepds [NODE] lists the slurmstepds of a node or of all: they outlive their
# slurmd, carry no name, and keep its log open.
stepds() {
	local p exe
	for p in /proc/[0-9]*; do
		exe=$(readlink "$p/exe" 2>/dev/null) || continue
		case $exe in
		*/slurmstepd*) if find "$p/fd" -lname "$DIR/log/${1:-*}.log" 2>/dev/null | grep . >/dev/null; then echo "${p#/proc/}"; fi ;;
		esac
	done
}

# tasks [NODE] lists the processes that carry the environment of a job of ours.
tasks() {
	local f
	grep -lzxF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ 2>/dev/null |
		while read -r f; do
			grep -qz '^SLURM_JOB_ID=' "$f" 2>/dev/null || continue
			[ -z "${1-}" ] || grep -qzxF "SLURMD_NODENAME=$1" "$f" 2>/dev/null || continue
			f=${f#/proc/}
			echo "${f%/environ}"
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

# end_jobs [NODE] kills the slurmstepds of a node or of all, and what they started.
# They are stopped first, so that none can report the end of its tasks.
end_jobs() {
	local round found
	for round in 1 2 3 4 5; do
		mapfile -t found < <(stepds "${1-}")
		((${#found[@]} == 0)) || kill -STOP "${found[@]}" 2>/dev/null || true
		mapfile -t -O ${#found[@]} found < <(tasks "${1-}")
		mapfile -t found < <(descendants "${found[@]}" | grep -vxF -e "$$")
		((${#found[@]})) || return 0
		kill -KILL "${found[@]}" 2>/dev/null || true
		sleep 0.0"$round"
	done
}

# slay NAME ends a daemon without warning: with a node goes everything that runs on it.
slay() {
	local p
	if p=$(pid_of "$1"); then
		kill -KILL "$p"
		gone "$1" 50 || true
	fi
	rm -f "$DIR/run/$1.pid"
	if nodes | grep -xF -e "$1" >/dev/null; then end_jobs "$1"; fi
}

# logs [LINES] prints the ends of the daemons' logs. Those of SLURM write the same
# to NAME.log and, as they run in the foreground, to NAME.out.
logs() {
	local f
	for f in "$DIR"/log/*; do
		case $f in */await-*) continue ;; esac
		[ -s "$f" ] || continue
		if [ "${f%.out}" != "$f" ] && [ -s "${f%.out}.log" ]; then continue; fi
		echo "--- ${f#"$DIR"/}"
		tail -n "${1:-30}" "$f"
	done
}
