package source

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// csiSize returns the size of a CSI camera's images in pixels.
func csiSize(u capture.URI) (width, height int) {
	if u.Width > 0 {
		return u.Width, u.Height
	}
	return 1280, 720
}

func csiPipeline(u capture.URI, every bool) string {
	width, height := csiSize(u)
	fps := 30.0
	if u.FPS > 0 {
		fps = u.FPS
	}
	mode := ""
	if u.Mode >= 0 {
		mode = fmt.Sprintf(" sensor-mode=%d", u.Mode)
	}
	const pipeline = "nvarguscamerasrc sensor-id=%s%s ! video/x-raw(memory:NVMM),width=%d,height=%d,framerate=%s,format=NV12 ! " +
		"nvvidconv flip-method=%d ! video/x-raw,format=NV12 ! %s"
	return fmt.Sprintf(pipeline,
		u.Address, mode, width, height, fraction(fps), u.Flip, appsink(every, false))
}

// argusSocket is the socket of nvargus-daemon, which reads the sensors. Another one replaces it with each restart of the daemon.
const argusSocket = "/tmp/argus_socket"

const (
	argusHint = "check the ribbon cable, and sudo systemctl restart nvargus-daemon"
	siplHint  = "a camera of SIPL is read by 'gst:nvsiplsrc json-file=FILE ! nvvidconv ! video/x-raw,format=NV12'"
)

// siplSettings is the directory of a Thor with descriptions of the cameras that SIPL reads; Argus has others.
const siplSettings = "/var/nvidia/nvcam/settings/sipl"

// csiHint is what to do about a CSI camera that does not open.
func csiHint(settings string) string {
	if _, err := os.Stat(settings); err != nil {
		return argusHint
	}
	return argusHint + "; " + siplHint
}

// openCSI opens a CSI camera. JetPack's plugin connects to nvargus-daemon when it is loaded, keeps this connection as long as the process
// runs, and may hang when it is stopped: with options.Child each camera has a process of its own, which can be replaced.
func openCSI(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	if FindPlugin(pluginCSI) == "" {
		return nil, u.NewError("open", capture.ErrNotFound, "CSI cameras need GStreamer's nvarguscamerasrc, which is not installed",
			"it is part of JetPack; elsewhere name a /dev/videoN, or use --camera demo", nil)
	}
	if len(options.Child) == 0 {
		p, err := openGStreamer(ctx, u, csiPipeline(u, options.EveryFrame), options)
		if err != nil {
			return nil, withHint(err, csiHint(siplSettings))
		}
		return p, nil
	}
	c := &csi{uri: u, ctx: ctx, options: options, socket: argusSocket}
	if path := os.Getenv(argusEnvironment); path != "" {
		c.socket = path
	}
	if err := c.open(); err != nil {
		_ = c.Close()
		return nil, withHint(err, csiHint(siplSettings))
	}
	return c, nil
}

// argusEnvironment is the environment variable with the path of the daemon's socket; JetPack's libraries use the usual one.
const argusEnvironment = "EDGE_INFER_ARGUS_SOCKET"

// csi is a CSI camera that is read by a child process.
type csi struct {
	uri     capture.URI
	ctx     context.Context
	options settings
	socket  string     // of nvargus-daemon
	found   socketFile // socket, when the camera was opened
	checked time.Time

	child  *cameraProcess
	images *sharedImages
	fps    float64

	seed   maphash.Seed
	sample uint64    // hash of the last image's sample
	moved  time.Time // when the sample last changed
}

// open waits for nvargus-daemon and for the first sign of the child.
func (c *csi) open() error {
	found, err := c.awaitDaemon()
	if err != nil {
		return err
	}
	c.found, c.checked = found, time.Now()
	width, height := csiSize(c.uri)
	images, memory, err := newSharedImages(engine.NV12.RowBytes(width) * engine.NV12.Rows(height))
	if err != nil {
		return c.uri.NewError("open", capture.ErrMemory, "no memory for images", "", err)
	}
	defer memory.Close()
	c.images = images
	c.seed = maphash.MakeSeed()
	request := cameraRequest{
		Pipeline: csiPipeline(c.uri, c.options.EveryFrame), EveryFrame: c.options.EveryFrame, MaxPixels: c.options.MaxPixels,
		OpenTimeout: c.options.OpenTimeout,
	}
	c.child, err = startCameraProcess(c.ctx, c.options.Child, request, memory)
	if err != nil {
		return c.uri.NewError("open", capture.ErrUnavailable, "the camera's process did not start", "", err)
	}
	c.fps, err = c.child.awaitOpen()
	return withURI(c.uri, err)
}

// daemonPause is the interval of attempts to reach nvargus-daemon, which opens its socket some time after it was started.
const daemonPause = 200 * time.Millisecond

// awaitDaemon waits until nvargus-daemon accepts connections and returns its socket's identity.
func (c *csi) awaitDaemon() (socketFile, error) {
	limit := time.NewTimer(c.options.OpenTimeout)
	defer limit.Stop()
	dialer := net.Dialer{}
	for {
		connection, err := dialer.DialContext(c.ctx, "unix", c.socket)
		if err == nil {
			_ = connection.Close()
			return identify(c.socket)
		}
		select {
		case <-c.ctx.Done():
			return socketFile{}, c.ctx.Err()
		case <-limit.C:
			message := "nvargus-daemon does not answer"
			if errors.Is(err, fs.ErrNotExist) {
				message = "nvargus-daemon is not running"
			}
			return socketFile{}, c.uri.NewError("open", capture.ErrUnavailable, message,
				"sudo systemctl restart nvargus-daemon; in a container, mount "+argusSocket, nil)
		case <-time.After(daemonPause):
		}
	}
}

// socketFile identifies a socket. An inode number may be used again, but not with the same time of creation.
type socketFile struct {
	inode   uint64
	changed unix.Timespec
}

func identify(path string) (socketFile, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return socketFile{}, err
	}
	return socketFile{stat.Ino, stat.Ctim}, nil
}

// Live implements capture.Source.
func (c *csi) Live() bool { return true }

// FPS implements capture.Source.
func (c *csi) FPS() float64 { return c.fps }

// daemonCheck is the interval at which the daemon's socket is checked.
const daemonCheck = time.Second

// Next implements capture.Source. It copies the image from the memory shared with the child.
func (c *csi) Next(lend capture.Lender) (capture.Frame, error) {
	if err := c.await(); err != nil {
		return capture.Frame{}, err
	}
	slot := c.images.take(!c.options.EveryFrame)
	if slot < 0 { // an older signal, whose image was taken with a newer one
		return capture.Frame{}, capture.ErrNoBuffer
	}
	defer c.images.free(slot)
	seen, err := c.images.image(slot)
	if err == nil {
		err = c.checkFrozen(seen.Data)
	}
	if err != nil {
		return capture.Frame{}, withURI(c.uri, err)
	}
	f, err := lend.Frame(seen.Format, seen.Width, seen.Height)
	if err != nil {
		return capture.Frame{}, err
	}
	copy(f.Data, seen.Data)
	f.Seq, f.Captured = seen.Seq, seen.Captured
	f.Time = time.Now().Add(time.Duration(f.Captured - capture.Monotonic()))
	return f, nil
}

// await waits for an image, for the read time-out at most, while the daemon is the same.
func (c *csi) await() error {
	for waited := time.Duration(0); ; waited += daemonCheck {
		if err := c.checkDaemon(); err != nil {
			return err
		}
		arrived, err := c.child.await(min(daemonCheck, c.options.ReadTimeout-waited))
		if err != nil {
			return withURI(c.uri, err)
		}
		if arrived {
			return nil
		}
		if waited+daemonCheck >= c.options.ReadTimeout {
			return c.uri.NewError("read", capture.ErrStalled, "no image for "+c.options.ReadTimeout.String(), "", nil)
		}
	}
}

// checkDaemon returns an error if nvargus-daemon was restarted: the child is connected to the one before.
func (c *csi) checkDaemon() error {
	now := time.Now()
	if now.Sub(c.checked) < daemonCheck {
		return nil
	}
	c.checked = now
	if now, err := identify(c.socket); err != nil || now != c.found {
		return c.uri.NewError("read", capture.ErrUnavailable, "nvargus-daemon was restarted", "", nil)
	}
	return nil
}

// samples is the number of bytes of an image that are compared with those of the image before.
const samples = 4096

// checkFrozen returns an error if images have been identical for the read time-out: after a fault the last image may be delivered again and
// again, while a sensor's noise makes any two images differ. Images of one colour are no evidence.
func (c *csi) checkFrozen(data []byte) error {
	var taken [samples]byte
	step := max(1, len(data)/samples)
	count := 0
	uniform := true
	for i := 0; i < len(data) && count < samples; i += step {
		taken[count] = data[i]
		uniform = uniform && data[i] == data[0]
		count++
	}
	now := time.Now()
	hash := maphash.Bytes(c.seed, taken[:count])
	if hash != c.sample || uniform || c.moved.IsZero() {
		c.sample, c.moved = hash, now
		return nil
	}
	if now.Sub(c.moved) < c.options.ReadTimeout {
		return nil
	}
	return &capture.Error{
		Op: "read", Kind: capture.ErrStalled, Message: fmt.Sprintf("the same image for %v", c.options.ReadTimeout.Round(time.Millisecond)),
	}
}

// Close implements capture.Source. It ends the child, at once if it hangs.
func (c *csi) Close() error {
	if c.child != nil {
		c.child.close()
		c.child = nil
	}
	if c.images != nil {
		c.images.close()
		c.images = nil
	}
	return nil
}
