package main

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
)

// diskPage is what a disk writes at once, in bytes.
const diskPage = 4096

// disk is a file system in memory with the rules that POSIX gives for a power cut: what was synced is there afterwards, of the rest any
// part. Writes survive by page and in any order, changes of a directory in their order.
type disk struct {
	mu      sync.Mutex
	numbers uint64
	root    *diskNode
}

func newDisk() *disk {
	d := &disk{}
	d.root = d.node(syscall.S_IFDIR | 0o700)
	return d
}

// node returns a new file or directory without a name. The lock is held.
func (d *disk) node(mode uint32) *diskNode {
	d.numbers++
	n := &diskNode{disk: d, number: d.numbers, mode: mode, changed: time.Now(), dirty: map[int]bool{}}
	if mode&syscall.S_IFDIR != 0 {
		n.entries = map[string]*diskNode{}
		n.syncedEntries = map[string]*diskNode{}
	}
	return n
}

// mount mounts the disk until the returned function is called. It reports whether this machine allows that.
func (d *disk) mount(t *testing.T, directory string) (unmount func() error, err error) {
	forever := time.Hour // the kernel makes all changes
	options := &fs.Options{EntryTimeout: &forever, AttrTimeout: &forever, UID: uint32(syscall.Getuid()), GID: uint32(syscall.Getgid())}
	options.MountOptions = fuse.MountOptions{FsName: "disk", Name: "edge-infer-test", DirectMountStrict: true, DisableXAttrs: true}
	server, err := fs.Mount(directory, d.root, options)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = server.Unmount() }) // after a failed test
	return server.Unmount, nil
}

// afterPowerCut returns a disk with what is left.
func (d *disk) afterPowerCut(random *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := &disk{}
	left.root = d.root.afterPowerCut(left, random, map[*diskNode]*diskNode{})
	return left
}

// diskNode is a file or directory. The disk's lock guards it.
type diskNode struct {
	fs.Inode
	disk    *disk
	number  uint64
	mode    uint32
	changed time.Time

	// Of a file: what programs read, what is on the disk, and the pages in which they differ.
	data, synced []byte
	dirty        map[int]bool

	// Of a directory.
	entries, syncedEntries map[string]*diskNode
	pending                []diskChange // since the directory was synced
}

// diskChange is a change of a directory: names that it loses and gets.
type diskChange struct {
	removed, added string
	node           *diskNode // of added
}

func (c *diskChange) apply(entries map[string]*diskNode) {
	if c.removed != "" {
		delete(entries, c.removed)
	}
	if c.added != "" {
		entries[c.added] = c.node
	}
}

// change changes a directory.
func (n *diskNode) change(c diskChange) {
	c.apply(n.entries)
	n.pending = append(n.pending, c)
	n.changed = time.Now()
}

// sync makes the node durable.
func (n *diskNode) sync() syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.entries != nil {
		n.syncedEntries = maps.Clone(n.entries)
		n.pending = nil
		return 0
	}
	n.synced = resized(n.synced, len(n.data))
	for page := range n.dirty {
		n.copyPage(n.synced, page)
	}
	clear(n.dirty)
	return 0
}

// copyPage copies a page of the data that programs read.
func (n *diskNode) copyPage(to []byte, page int) {
	if at := page * diskPage; at < min(len(to), len(n.data)) {
		copy(to[at:min(len(to), at+diskPage)], n.data[at:])
	}
}

// resized returns data of another length, filled up with zeros.
func resized(data []byte, length int) []byte {
	before := len(data)
	if length <= before {
		return data[:length]
	}
	data = slices.Grow(data, length-before)[:length]
	clear(data[before:])
	return data
}

func (n *diskNode) afterPowerCut(left *disk, random *rand.Rand, known map[*diskNode]*diskNode) *diskNode {
	if known[n] != nil { // it has two names
		return known[n]
	}
	to := left.node(n.mode)
	known[n] = to
	if n.entries != nil {
		entries := maps.Clone(n.syncedEntries)
		for i := range random.IntN(len(n.pending) + 1) {
			n.pending[i].apply(entries)
		}
		for name, entry := range entries {
			to.entries[name] = entry.afterPowerCut(left, random, known)
		}
		to.syncedEntries = maps.Clone(to.entries)
		return to
	}
	least, most := min(len(n.synced), len(n.data)), max(len(n.synced), len(n.data))
	size := []int{len(n.synced), len(n.data), least + random.IntN(most-least+1)}[random.IntN(3)]
	to.data = resized(slices.Clone(n.synced), size)
	for page := range n.dirty {
		if random.IntN(2) == 0 {
			n.copyPage(to.data, page)
		}
	}
	to.synced = slices.Clone(to.data)
	return to
}

// resize truncates or extends a file. The lock is held.
func (n *diskNode) resize(size int) {
	for page := min(size, len(n.data)) / diskPage; page <= max(size, len(n.data))/diskPage; page++ {
		n.dirty[page] = true
	}
	n.data = resized(n.data, size)
	n.changed = time.Now()
}

// fill writes attributes. The lock is held.
func (n *diskNode) fill(out *fuse.Attr) {
	out.Mode, out.Ino, out.Nlink = n.mode, n.number, 1
	out.Size, out.Blksize = uint64(len(n.data)), diskPage
	out.Blocks = (out.Size + 511) / 512
	out.SetTimes(&n.changed, &n.changed, &n.changed)
}

// inode returns the kernel's view of an entry. The lock is held.
func (n *diskNode) inode(ctx context.Context, entry *diskNode, out *fuse.EntryOut) *fs.Inode {
	entry.fill(&out.Attr)
	return n.NewInode(ctx, entry, fs.StableAttr{Mode: entry.mode & syscall.S_IFMT, Ino: entry.number})
}

// add adds a new entry to a directory.
func (n *diskNode) add(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.entries[name] != nil {
		return nil, syscall.EEXIST
	}
	entry := n.disk.node(mode)
	n.change(diskChange{added: name, node: entry})
	return n.inode(ctx, entry, out), 0
}

func (n *diskNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	entry := n.entries[name]
	if entry == nil {
		return nil, syscall.ENOENT
	}
	return n.inode(ctx, entry, out), 0
}

func (n *diskNode) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	node, errno := n.add(ctx, name, syscall.S_IFREG|mode&0o777, out)
	return node, nil, fuse.FOPEN_KEEP_CACHE, errno
}

func (n *diskNode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.add(ctx, name, syscall.S_IFDIR|mode&0o777, out)
}

func (n *diskNode) Unlink(_ context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.change(diskChange{removed: name})
	return 0
}

func (n *diskNode) Rmdir(_ context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if len(n.entries[name].entries) > 0 {
		return syscall.ENOTEMPTY
	}
	n.change(diskChange{removed: name})
	return 0
}

func (n *diskNode) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if flags != 0 {
		return syscall.EINVAL
	}
	entry := n.entries[name]
	to := parent.(*diskNode)
	if to == n {
		n.change(diskChange{removed: name, added: newName, node: entry})
		return 0
	}
	to.change(diskChange{added: newName, node: entry})
	n.change(diskChange{removed: name})
	return 0
}

func (n *diskNode) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		n.disk.mu.Lock()
		defer n.disk.mu.Unlock()
		n.resize(0)
	}
	return nil, fuse.FOPEN_KEEP_CACHE, 0
}

func (n *diskNode) Read(_ context.Context, _ fs.FileHandle, to []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	read := 0
	if at < int64(len(n.data)) {
		read = copy(to, n.data[at:])
	}
	return fuse.ReadResultData(to[:read]), 0
}

func (n *diskNode) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	end := int(at) + len(data)
	if end > len(n.data) {
		n.resize(end)
	}
	copy(n.data[at:], data)
	for page := int(at) / diskPage; page*diskPage < end; page++ {
		n.dirty[page] = true
	}
	n.changed = time.Now()
	return uint32(len(data)), 0
}

func (n *diskNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return n.sync() }

func (n *diskNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.fill(&out.Attr)
	return 0
}

func (n *diskNode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if size, given := in.GetSize(); given {
		n.resize(int(size))
	}
	if mode, given := in.GetMode(); given {
		n.mode = n.mode&syscall.S_IFMT | mode&0o7777
	}
	n.fill(&out.Attr)
	return 0
}

func (n *diskNode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize, out.NameLen = diskPage, diskPage, 255
	out.Blocks, out.Bfree, out.Bavail = 1<<21, 1<<20, 1<<20
	out.Files, out.Ffree = 1<<20, 1<<20
	return 0
}

// OpendirHandle implements fs.NodeOpendirHandler.
func (n *diskNode) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	h := &directoryHandle{node: n}
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		entry := n.entries[name]
		h.left = append(h.left, fuse.DirEntry{Name: name, Mode: entry.mode, Ino: entry.number})
	}
	return h, 0, 0
}

// directoryHandle is an open directory.
type directoryHandle struct {
	node *diskNode
	left []fuse.DirEntry // not read yet
}

func (h *directoryHandle) Readdirent(context.Context) (*fuse.DirEntry, syscall.Errno) {
	if len(h.left) == 0 {
		return nil, 0
	}
	entry := &h.left[0]
	h.left = h.left[1:]
	return entry, 0
}

func (h *directoryHandle) Fsyncdir(context.Context, uint32) syscall.Errno { return h.node.sync() }

// The disk's methods are found by their interfaces.
var (
	_ fs.NodeLookuper       = (*diskNode)(nil)
	_ fs.NodeCreater        = (*diskNode)(nil)
	_ fs.NodeMkdirer        = (*diskNode)(nil)
	_ fs.NodeUnlinker       = (*diskNode)(nil)
	_ fs.NodeRmdirer        = (*diskNode)(nil)
	_ fs.NodeRenamer        = (*diskNode)(nil)
	_ fs.NodeOpener         = (*diskNode)(nil)
	_ fs.NodeReader         = (*diskNode)(nil)
	_ fs.NodeWriter         = (*diskNode)(nil)
	_ fs.NodeFsyncer        = (*diskNode)(nil)
	_ fs.NodeGetattrer      = (*diskNode)(nil)
	_ fs.NodeSetattrer      = (*diskNode)(nil)
	_ fs.NodeStatfser       = (*diskNode)(nil)
	_ fs.NodeOpendirHandler = (*diskNode)(nil)
	_ fs.FileReaddirenter   = (*directoryHandle)(nil)
	_ fs.FileFsyncdirer     = (*directoryHandle)(nil)
)

// TestDiskForgetsWhatIsNotSynced: without this the attack by power cuts would prove nothing.
func TestDiskForgetsWhatIsNotSynced(t *testing.T) {
	t.Parallel()
	d := newDisk()
	directory := t.TempDir()
	unmount, err := d.mount(t, directory)
	if err != nil {
		t.Skip("this machine does not allow to mount a file system: ", err)
	}
	synced := writeSynced(t, directory)
	require.NoError(t, unmount())
	lost := 0
	for seed := range uint64(50) {
		left := d.afterPowerCut(rand.New(rand.NewPCG(seed, 0)))
		file := left.root.entries["synced"]
		require.NotNil(t, file)
		require.Equal(t, synced, file.data)
		require.Nil(t, left.root.entries["before"])
		below := left.root.entries["new"]
		require.NotNil(t, below, "a new directory")
		require.Equal(t, synced, below.entries["newer"].entries["synced"].data)
		appended := left.root.entries["appended"]
		require.NotNil(t, appended)
		require.GreaterOrEqual(t, len(appended.data), len(synced))
		require.Equal(t, synced, appended.data[:len(synced)])
		if len(appended.data) == len(synced) || left.root.entries["unsynced"] == nil {
			lost++
		}
	}
	require.Greater(t, lost, 10)
	require.Less(t, lost, 50)
}
