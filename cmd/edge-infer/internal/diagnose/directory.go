package diagnose

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// dir checks that the daemon can write to a directory, or create it, and that there is enough space.
func (d *Doctor) dir(f Dir) Check {
	at := f.Path
	for {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return fail(f.Name, "remove "+at+", or "+f.Move, "%s is not a directory", at)
		}
		if err == nil || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		return fail(f.Name, "make it writable for this user, or "+f.Move, "%s: %v", at, err)
	}
	free, err := d.Free(at)
	if err != nil {
		return warn(f.Name, f.Move, "%s: %v", f.Path, err)
	}
	if free < f.Need {
		return warn(f.Name, "free "+gibibytes(f.Need-free)+", or "+f.Move, "%s, only %s free", f.Path, gibibytes(free))
	}
	return ok(f.Name, "%s, %s free", f.Path, gibibytes(free))
}

// plans checks that the plan cache may be trusted, if it is among d.Dirs.
func (d *Doctor) plans() []Check {
	dir, err := tensorrt.CacheDir()
	if err != nil || !slices.ContainsFunc(d.Dirs, func(f Dir) bool { return f.Path == dir }) {
		return nil
	}
	var refused *engine.Error
	if err := (tensorrt.Cache{Dir: dir}).CheckTrusted(); errors.As(err, &refused) {
		return []Check{fail("plan cache", refused.Hint, "%s: %v", strings.TrimPrefix(refused.Message, "plan cache: "), refused.Err)}
	}
	return nil
}

func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
