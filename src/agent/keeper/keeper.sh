#!/bin/sh
# Keeps one attempt's job: ends all of it at its deadline though everybody else be dead, and puts down how it ended.
#
#   sh keeper.sh keep  FOLDER WORKDIR CGROUPS SPACE WRAP SHELL COMMAND…  outside: holds the lock, polls the deadline
#   sh keeper.sh first FOLDER WORKDIR CGROUPS PATH COMMAND…              inside: the namespace's first process, waits for the job
#
# SPACE is `namespace`, `cgroup` (the first of CGROUPS is killed whole) or `none` (a process group is all there is); WRAP
# the words that put the inside there (see confine.ts).
#
# FOLDER holds
#   lock      held (flock) as long as anything of the keeper lives; a second start fails with 75 and adopts
#   keeper    "BOOT_ID PID STARTTIME": who keeps, told apart from a later process of that pid
#   deadline  "BOOT_ID SECONDS SECONDS" of boot time, or "BOOT_ID never never"; rewritten in place; unreadable is passed
#   exit      64 bytes made beforehand, so that a full disk cannot swallow it: new, begun, exit N, signal N, deadline,
#             no-start N, no-workdir, void (given up before it began); anything but "new" at the start fails with 76: an attempt begins once
#   log       what the job writes
#
# The poller stands outside the job's PID namespace: a job can neither see nor stop nor kill it. Were it killed from
# outside, the kernel takes the namespace with it (the parent-death signals below), so nothing is ever left unkept.
# Both halves are this file, in nothing but POSIX sh: dash and bash must both work, and each word forked costs a millisecond.
set -u

# the exit file is written over, never truncated: its block is there already
mark() { printf '%-63s\n' "$1" 1<>"$dir/exit"; }

# puts the word that the exit file holds into $state
look() { state='' number=''; read -r state number <"$dir/exit" || :; }

# true once the deadline has passed, was set under another boot, or cannot be read
passed() {
  for attempt in 1 2 3; do # a second look, should the first have met a write half done
    id='' at='' again=''
    read -r id at again 2>/dev/null <"$dir/deadline" && [ -n "$at" ] && [ "$at" = "$again" ] && break
    at=''
  done
  [ "$id" = "$boot" ] || return 0
  case $at in
    never) return 1 ;;
    '' | *[!0-9]*) return 0 ;;
  esac
  up='' rest=''
  read -r up rest </proc/uptime || return 0
  [ "${up%.*}" -ge "$at" ]
}

# true once no process is in the job's cgroup
emptied() {
  while read -r key value; do
    [ "$key" = populated ] && return "$value"
  done <"${cgroups%% *}/cgroup.events"
}

# the 22nd field of /proc/PID/stat: when it started, in ticks since boot
started() { shift 21 && start=$1; }

# kills the namespace's first process; its parent returns only when the kernel has cleared the whole namespace
kill_all() {
  child='' rest=''
  if [ "$space" != namespace ]; then
    [ "$space" = cgroup ] && echo 1 >"${cgroups%% *}/cgroup.kill"
    kill -KILL "-$inner" 2>/dev/null || kill -KILL "$inner" 2>/dev/null
    return
  fi
  read -r child rest 2>/dev/null <"/proc/$inner/task/$inner/children" || :
  kill -KILL "${child:-$inner}" 2>/dev/null
}

keep() {
  dir=$1 work=$2 cgroups=$3 space=$4 wrap=$5 shell=$6 path=$PATH
  shift 6
  PATH=/usr/bin:/bin:/usr/sbin:/sbin:$path # the job's own comes back before its exec
  exec 3>>"$dir/lock" || exit 74
  flock -n 3 || exit 75
  look
  [ "$state" = new ] || exit 76
  read -r boot </proc/sys/kernel/random/boot_id
  read -r stat <"/proc/$$/stat"
  started $stat
  printf '%s %s %s\n' "$boot" "$$" "$start" >"$dir/keeper" || exit 74

  $wrap "$shell" "$0" first "$dir" "$work" "$cgroups" "$path" "$@" </dev/null >/dev/null 2>&1 &
  inner=$!

  # a trapped SIGCHLD ends `wait` early: so a tick of sleep wakes the loop, and the job's end does at once
  trap : CHLD HUP INT TERM
  late=''
  while :; do
    if [ -n "$late" ] || passed; then
      late=yes
      look
      [ "$state" = begun ] && mark deadline # before the first process can say that a signal ended it
      kill_all
    fi
    sleep 1 3>&- &
    tick=$!
    wait "$inner"
    case $? in
      129 | 130 | 143 | 145) ;; # woken; were it the inner one's own status, the next wait says 127
      *) break ;;
    esac
  done
  kill "$tick" 2>/dev/null
  # without a namespace what was forked away outlives the job's first process
  [ "$space" = namespace ] || kill_all
  if [ "$space" = cgroup ]; then
    until emptied; do
      kill_all
      sleep 1 3>&-
    done
  fi
  exit 0
}

first() {
  dir=$1 work=$2 cgroups=$3 PATH=$4
  shift 4
  exec 2>"$dir/how" # a shell tells of a signal here when it reaps; see below
  trap : HUP INT TERM # sent to the job's whole group; a subshell forgets this
  cd "$work" || {
    mark no-workdir
    exit 0
  }
  # in the foreground: a job put in the background would be started with SIGINT ignored
  (
    {
      for group in $cgroups; do echo 0 >"$group/cgroup.procs"; done
      echo 800 >/proc/self/oom_score_adj
    } 2>/dev/null
    mark begun
    exec "$@" 3>&- </dev/null >>"$dir/log" 2>&1
  )
  code=$?
  look
  [ "$state" = begun ] || exit 0
  how=''
  while read -r how; do [ -z "$how" ] || break; done <"$dir/how"
  case $code in
    126 | 127) command -v -- "$1" >/dev/null || {
      mark "no-start $code"
      exit 0
    } ;;
    129 | 1[3-9]? | 2??) [ -z "$how" ] || { # SIGINT and SIGPIPE are not told of: those stay codes
      mark "signal $((code - 128))"
      exit 0
    } ;;
  esac
  mark "exit $code"
  exit 0
}

"$@"
