package record

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"
)

// State is the state of a clip.
type State string

// The states of clips. A clip that the quota removes has no row any more.
const (
	Open   State = "open"   // being written; what its file has so far can be played
	Closed State = "closed" // complete
	Lost   State = "lost"   // it has no file: the disk failed, or somebody removed it
)

// Clip is a video file of one camera around one or several events, or a part of its continuous recording. All times of day are labels; only
// Duration is measured, with the monotonic clock.
type Clip struct {
	// ID is unique over all cameras and restarts. It has only letters, digits and "-".
	ID     string `json:"id"`
	Camera string `json:"camera"`
	// Events are the ids of the objects whose events the clip shows, as in MQTT events, in order of arrival; none in a continuous recording.
	Events []string `json:"events"`
	// Path is the file's path relative to the clips' directory, with slashes.
	Path string `json:"path"`
	// Start is the time of the first image, Requested the time at which the clip should begin. Start is earlier by less than one GOP, or
	// later if the camera's packets did not reach back so far.
	Start     time.Time `json:"start"`
	Requested time.Time `json:"requested"`
	// Duration is the length of the video that is in the file.
	Duration time.Duration `json:"duration"`
	// Codec is the codec as in the type of the file (RFC 6381), such as "avc1.64001f", "hvc1.1.6.L93.B0" or "mjpeg".
	Codec  string `json:"codec"`
	Bytes  int64  `json:"bytes"`
	State  State  `json:"state"`
	Pinned bool   `json:"pinned"` // never removed by the quota
}

// ErrPinned is returned by RemoveClip for a pinned clip.
var ErrPinned = errors.New("the clip is pinned")

// Index stores the rows of clips. A row is written before its file and removed before it, so that a file without a row is the only thing
// that a crash can leave behind, or a row whose file has just been created. Its methods may be called from any goroutine; they return when
// the row is stored as durably as the index stores events.
type Index interface {
	// OpenClip adds the row of a clip in state Open.
	OpenClip(ctx context.Context, clip *Clip) error
	// UpdateClip replaces the row with the clip's ID but for Pinned, which belongs to the user. It is no error if the row does not exist.
	UpdateClip(ctx context.Context, clip *Clip) error
	// AdoptClip adds the row of a file that the start's sweep found without one; Events may name events that are not stored.
	AdoptClip(ctx context.Context, clip *Clip) error
	// RemoveClip removes a row, which need not exist. It returns ErrPinned if the clip is pinned.
	RemoveClip(ctx context.Context, id string) error
	// Clips calls yield for each clip in any state, oldest Start first, until it returns false. yield may call the other methods.
	Clips(ctx context.Context, yield func(clip *Clip) bool) error
}

// idTime is the form of the start at the beginning of a clip's ID, in UTC.
const idTime = "20060102T150405"

// newID returns the ID of a clip that begins at a time.
func newID(start time.Time) string {
	return start.UTC().Format(idTime) + "-" + strings.ToLower(rand.Text()[:10])
}

// StartOf returns when the clip with an ID begins, to the second; the zero time for an ID of another form.
func StartOf(id string) time.Time {
	text, _, _ := strings.Cut(id, "-")
	start, err := time.Parse(idTime, text)
	if err != nil {
		return time.Time{}
	}
	return start
}
