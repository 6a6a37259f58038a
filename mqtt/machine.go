package mqtt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

const (
	// machinePause is the time between two messages of the machine topic while another machine has the same device name.
	machinePause = time.Minute
	// conflictTime is how long another machine counts as present after its last message.
	conflictTime = 3 * machinePause
)

// machine is the payload of the machine topic: the process that publishes under the device's name.
type machine struct {
	Machine string `json:"machine"`
	Host    string `json:"host"`
	Run     string `json:"run"` // of the process
}

// nameConflict is another machine with the same device name, whose messages mix with those of this one.
type nameConflict struct {
	outbox *outbox
	run    string // of this process

	// Guarded by the outbox's lock.
	other    machine
	seen     time.Time
	answered time.Time // when this machine has made itself known to it
}

// self returns the client's own payload of the machine topic.
func (n *nameConflict) self() machine {
	host, _ := os.Hostname()
	return machine{Machine: machineID(""), Host: host, Run: n.run}
}

// machineID returns a text that distinguishes this machine from others, for a purpose. The serial number of a board counts where there is
// one, because boards whose disks are clones share their /etc/machine-id.
func machineID(purpose string) string {
	serial, _ := os.ReadFile("/proc/device-tree/serial-number")
	identity, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		host, _ := os.Hostname()
		identity = []byte(host)
	}
	sum := sha256.Sum256(append(append(serial, identity...), purpose...))
	return hex.EncodeToString(sum[:4])
}

// announce publishes which machine this is, QoS 1 and retained.
func (n *nameConflict) announce() {
	message := struct {
		payload.Header
		machine
	}{payload.NewHeader(n.outbox.topics.Device, time.Now()), n.self()}
	n.outbox.mailbox(topicKey{kind: kindMachine}).Put(func(buf []byte) []byte { return payload.AppendMessage(buf, &message) })
}

// note evaluates a message of the machine topic that is not retained, so that its machine is there now.
func (n *nameConflict) note(message []byte) {
	var other machine
	if json.Unmarshal(message, &other) != nil || other.Run == "" || other.Run == n.run {
		return
	}
	now := time.Now()
	n.outbox.mu.Lock()
	known := n.other == other && now.Sub(n.seen) < conflictTime
	n.other, n.seen = other, now
	answer := !known && now.Sub(n.answered) >= machinePause
	if answer {
		n.answered = now
	}
	n.outbox.mu.Unlock()
	if answer {
		n.outbox.link.Logger.Error("mqtt: another machine has this device name, their messages mix (give each machine its own name)",
			"name", n.outbox.topics.Device, "other", other.String())
		n.announce()
	}
}

// String describes a machine in messages.
func (m *machine) String() string {
	return fmt.Sprintf("%s (machine %s)", cmp.Or(m.Host, "without host name"), m.Machine)
}

// current returns the other machine, or nil.
func (n *nameConflict) current(now time.Time) *machine {
	if n.other.Run == "" || now.Sub(n.seen) >= conflictTime {
		return nil
	}
	return &n.other
}

// repeat keeps the other machine aware of this one as long as both have the same name, until done is closed.
func (n *nameConflict) repeat(done <-chan struct{}) {
	ticker := time.NewTicker(machinePause)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-ticker.C:
			n.outbox.mu.Lock()
			other := n.current(now)
			n.outbox.mu.Unlock()
			if other != nil {
				n.announce()
			}
		}
	}
}
