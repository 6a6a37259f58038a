package store

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// networkFileSystems are the file systems, by the kernel's magic number, on which SQLite's locks and shared memory do not work.
var networkFileSystems = map[int64]string{
	0x6969:     "NFS",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB",
	0x517b:     "SMB",
	0x01021997: "9P",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
}

// checkFileSystem refuses directories on network file systems.
func checkFileSystem(directory string) error {
	var at unix.Statfs_t
	if err := unix.Statfs(directory, &at); err != nil {
		return fmt.Errorf("statfs %s: %w", directory, err)
	}
	return refuseNetwork(directory, int64(at.Type)) //nolint:unconvert // its type differs between architectures
}

// freeSpace returns the bytes of a directory's disk that this process may still use.
func freeSpace(directory string) (int64, error) {
	var at unix.Statfs_t
	if err := unix.Statfs(directory, &at); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", directory, err)
	}
	return int64(min(at.Bavail, math.MaxInt64/uint64(at.Bsize))) * int64(at.Bsize), nil //nolint:unconvert // types differ
}

func refuseNetwork(directory string, magic int64) error {
	name, network := networkFileSystems[magic&0xffffffff]
	if !network {
		return nil
	}
	return fmt.Errorf("%s is on a network file system (%s), where a database loses data when the connection is lost: "+
		"set events.directory to a directory on a disk of this machine", directory, name)
}
