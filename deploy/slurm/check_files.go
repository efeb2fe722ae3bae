package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"assay/deploy"
	"assay/pkg/plan"
)

// fileFindings are about what nodes are to see.
func (s *scheduler) fileFindings(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	found := runsFindings(req.Runs, func() bool { return s.onlyHere(ctx) })
	if req.RankBinary != "" {
		found = append(found, binaryFinding(req.RankBinary))
	}
	for _, j := range req.Jobs {
		if path := program(j); path != "" {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				found = append(found, warning("program "+path, fmt.Sprintf("entry %q: %s does not exist on this machine; it has to on the nodes", j.Key, path), "scripts are relative to MODEL_DIR when it is set, else to the manifest"))
			}
		}
	}
	return found
}

// program is the path of what a job runs on the host, "" when PATH or an image
// decides.
func program(j plan.Job) string {
	path := j.Program.Script
	if c := j.Program.Command; len(c) > 0 {
		if path = c[0]; !strings.Contains(path, "/") {
			return ""
		}
	}
	switch {
	case j.Image != "" || path == "":
		return ""
	case filepath.IsAbs(path):
		return path
	}
	return filepath.Join(j.ModelDir, path)
}

func binaryFinding(path string) deploy.Finding {
	subject := "rank_binary " + path
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fault(subject, fmt.Sprintf("the rank_binary cannot be looked at: %v", err), "name an assay that every node sees, or none: then the running one is put beside the runs")
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fault(subject, path+" is no program that can be executed", "chmod +x "+path)
	}
	return ok(subject, "can be executed here")
}

// runsFindings try the directory of runs: that files can be made and renamed
// there, and on what they lie. Nothing is left behind. onlyHere says whether every
// node is this machine.
func runsFindings(runs string, onlyHere func() bool) []deploy.Finding {
	subject := "directory " + runs
	dir := existing(runs)
	if err := tryRename(dir); err != nil {
		message := fmt.Sprintf("no run can be kept in %s: %v", runs, err)
		return []deploy.Finding{outage(subject, message, "name another directory with --runs, or slurm.shared_workspace in the manifest")}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return []deploy.Finding{unknown(subject, err)}
	}
	name, reach := filesystem(uint32(st.Type))
	if reach == ownOnly && !onlyHere() {
		return []deploy.Finding{warning(subject, fmt.Sprintf("%s is on %s of this machine, which other nodes do not see: ranks could not leave their records there", runs, name),
			"name a directory on a shared filesystem with --runs, or slurm.shared_workspace in the manifest")}
	}
	f := ok(subject, "can be written, and files appear there at once (%s)", name)
	if reach == perhaps {
		f.Message += "; whether nodes see it only assay check --on-node can tell"
	}
	return []deploy.Finding{f}
}

// onlyHere reports whether every node of the site is this machine, as it is of a
// workstation.
func (s *scheduler) onlyHere(ctx context.Context) bool {
	host, err := os.Hostname()
	if err != nil {
		return false
	}
	tools := s.tools
	tools.limit = checkLimit
	out, err := tools.run(ctx, nil, "sinfo", "--all", "--noheader", "--format=%n")
	if err != nil {
		return false
	}
	hosts := strings.Fields(out)
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h string) bool { return h != host })
}

// existing is the nearest directory above a path, or the path itself, that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path
		}
		path = parent
	}
}

// tryRename makes a directory below dir, renames a file over another in it, and
// removes it.
func tryRename(dir string) (err error) {
	tmp, err := os.MkdirTemp(dir, ".assay-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	from, to := filepath.Join(tmp, "new"), filepath.Join(tmp, "file")
	for _, f := range []struct{ path, text string }{{to, "old"}, {from, "new"}} {
		if err := os.WriteFile(f.path, []byte(f.text), 0o600); err != nil {
			return err
		}
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if data, err := os.ReadFile(to); err != nil || string(data) != "new" {
		return fmt.Errorf("a file that was renamed over another still reads %q (%w)", data, errors.Join(err))
	}
	return nil
}

// reach says which machines see a filesystem.
type reach int

const (
	perhaps   reach = iota // it may be exported to others
	ownOnly                // this machine, or this container
	elsewhere              // it is on the network
)

// filesystem names a type of statfs(2).
func filesystem(magic uint32) (name string, r reach) {
	switch magic {
	case unix.TMPFS_MAGIC:
		return "tmpfs", ownOnly
	case unix.RAMFS_MAGIC:
		return "ramfs", ownOnly
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", ownOnly
	case unix.SQUASHFS_MAGIC:
		return "squashfs", ownOnly
	case unix.NFS_SUPER_MAGIC:
		return "nfs", elsewhere
	case 0x0bd00bd0:
		return "lustre", elsewhere
	case 0x47504653:
		return "gpfs", elsewhere
	case 0x19830326:
		return "beegfs", elsewhere
	case unix.CEPH_SUPER_MAGIC:
		return "ceph", elsewhere
	case unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb", elsewhere
	case unix.FUSE_SUPER_MAGIC:
		return "fuse", perhaps
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", perhaps
	case unix.XFS_SUPER_MAGIC:
		return "xfs", perhaps
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", perhaps
	case 0x2fc12fc1:
		return "zfs", perhaps
	}
	return fmt.Sprintf("filesystem type %#x", magic), perhaps
}
