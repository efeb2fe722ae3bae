// Package probe holds the workloads that assay brings along: they measure the
// machine they run on with nothing installed but the binary itself.
//
// Triad measures memory bandwidth as STREAM defines its triad. AllReduce runs a
// ring all-reduce over TCP between the ranks of a job and verifies every result. TCP
// measures the link between two hosts and verifies every byte.
// All print a table for people and one `name=value` line a metric. A gigabyte is
// 10^9 bytes everywhere, as it is in STREAM and in nccl-tests.
package probe
