package tensorrt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/edge-infer/edge-infer/engine"
)

// errUntrusted is the error of plans and plugins that another user can have written. A checksum inside the file proves nothing, because
// TensorRT executes code in plans.
var errUntrusted = errors.New("other users can write code to it, and it would run")

// readTrusted reads a file that only root and this user can have written: file and directory belong to one of them, and neither group nor
// other users may write to them.
func readTrusted(path string) ([]byte, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := checkPermissions(filepath.Dir(path), dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // checks and reads the same file
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	if err := checkPermissions(path, info); err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// CheckPlanFile checks the permissions of a plan named by the user. It returns an error if every user may write or replace it, and a
// warning if another user may change it, which can be intended.
func CheckPlanFile(path string) (warning string, err error) {
	return checkCodeFile("engine plan", path, "build the plan again")
}

// checkCodeFile is CheckPlanFile for any kind of file that contains code; renewal is the hint for getting a trusted one.
func checkCodeFile(kind, path, renewal string) (warning string, err error) {
	dir := filepath.Dir(path)
	for _, each := range []string{path, dir} {
		info, err := os.Stat(each)
		if err != nil {
			return "", err
		}
		sticky := info.Mode()&fs.ModeSticky != 0 // only owners may replace their files
		if info.Mode().Perm()&0o002 != 0 && !(info.IsDir() && sticky) {
			return "", &engine.Error{
				Op: "open", Backend: Name, Message: fmt.Sprintf("%s %s: %s has mode %04o", kind, path, each, info.Mode().Perm()),
				Hint: "chmod o-w " + each + " if you know who wrote to it, else " + renewal, Err: errUntrusted,
			}
		}
		if owner, known := info.Sys().(*syscall.Stat_t); known && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() && !(info.IsDir() && sticky) {
			warning = fmt.Sprintf("%s belongs to user %d, who can change what runs here", each, owner.Uid)
		}
	}
	return warning, nil
}

// CheckTrusted returns an error if plans of the cache are not trusted, nil if they are or if the directory does not exist yet.
func (c Cache) CheckTrusted() error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("plan cache: %w", err)
	}
	return checkPermissions(dir, info)
}

func checkPermissions(path string, info fs.FileInfo) error {
	refused := func(hint, format string, arguments ...any) error {
		return &engine.Error{Op: "open", Backend: Name, Message: fmt.Sprintf(format, arguments...), Hint: hint, Err: errUntrusted}
	}
	if info.Mode().Perm()&0o022 != 0 {
		return refused("chmod go-w "+path+" if you know who wrote to it, else remove it",
			"plan cache: %s has mode %04o", path, info.Mode().Perm())
	}
	if owner, known := info.Sys().(*syscall.Stat_t); known && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return refused("remove it, or set XDG_CACHE_HOME to a directory of this user", "plan cache: %s belongs to user %d, this is user %d",
			path, owner.Uid, os.Geteuid())
	}
	return nil
}
