package doctor

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

// directory says whether the daemon can write to a directory, which it makes when there is none yet, and whether there is room.
func (d *Doctor) dir(f Dir) Finding {
	place := f.Path
	for {
		info, err := os.Stat(place)
		if err == nil && !info.IsDir() {
			return fail(f.Check, "remove "+place+", or "+f.Move, "%s is no directory", place)
		}
		if err == nil || place == filepath.Dir(place) {
			break
		}
		place = filepath.Dir(place)
	}
	if err := unix.Access(place, unix.W_OK|unix.X_OK); err != nil {
		return fail(f.Check, "make it writable for this user, or "+f.Move, "%s: %v", place, err)
	}
	free, err := d.Free(place)
	if err != nil {
		return warn(f.Check, f.Move, "%s: %v", f.Path, err)
	}
	if free < f.Need {
		return warn(f.Check, "free "+gibibytes(f.Need-free)+", or "+f.Move, "%s, only %s free", f.Path, gibibytes(free))
	}
	return ok(f.Check, "%s, %s free", f.Path, gibibytes(free))
}

// plans says whether the plans in the cache may be run. It answers only where one of the checked directories is the cache.
func (d *Doctor) plans() []Finding {
	dir, err := tensorrt.CacheDir()
	if err != nil || !slices.ContainsFunc(d.Dirs, func(f Dir) bool { return f.Path == dir }) {
		return nil
	}
	var refused *engine.Error
	if err := (tensorrt.Cache{Dir: dir}).CheckTrusted(); errors.As(err, &refused) {
		return []Finding{fail("plan cache", refused.Hint, "%s: %v", strings.TrimPrefix(refused.Message, "plan cache: "), refused.Err)}
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
