package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// attackEnvironment is the duration of TestAttack, see make attack. Without it each attack is tried a few times and nothing is timed.
const attackEnvironment = "EDGE_INFER_ATTACK"

// attackTableEnvironment is the CSV file for the result.
const attackTableEnvironment = "EDGE_INFER_ATTACK_TABLE"

// The bounds of a timed run.
const (
	attackRounds       = 3
	attackRate         = 0.99 // of the frames of a camera that is not attacked
	attackAnswer       = 2 * time.Second
	attackConnections  = 48 // kept open at a time
	attackPause        = 5 * time.Millisecond
	attackCameraRate   = 5 // frames per second
	attackDefaultNice  = 10
	attackReadDeadline = 50 * time.Millisecond
)

// attack is one way to disturb the programs.
type attack struct {
	name  string
	try   func(a *arena)
	tries int // in a run that is not timed
}

// attacks returns all attacks. What each must not do is checked by arena.check.
func attacks() []attack {
	return []attack{
		{"MQTT: bytes before login", (*arena).attackLogin, 20},
		{"MQTT: packets after login", (*arena).attackSession, 20},
		{"MQTT: subscribers that do not read", (*arena).attackSlowSubscriber, 20},
		{"MQTT: small packets", (*arena).attackSmallPackets, 5},
		{"MQTT: commands", (*arena).attackCommands, 3},
		{"web page: requests", (*arena).attackPage, 20},
		{"serve: HTTP", (*arena).attackServeHTTP, 20},
		{"serve: gRPC", (*arena).attackServeGRPC, 20},
		{"camera: damaged streams", (*arena).attackCamera, 5},
		{"inference server: damaged answers", (*arena).attackInference, 5},
		{"second networks: invalid, contradictory, slow", (*arena).attackSecondNetworks, 5},
		{"networks that hang", (*arena).attackHangingNetworks, 3},
		{"clock jumps", (*arena).attackClock, 5},
		{"reloads", (*arena).attackReloads, 5},
		{"file descriptors exhausted", (*arena).attackDescriptors, 2},
		{"kills with events in flight", (*arena).attackKill, 2},
		{"power cuts with events in flight", (*arena).attackPowerCut, 3},
		{"bit rot in the state directory", (*arena).attackBitRot, 1},
		{"full disk", (*arena).attackFullDisk, 1},
	}
}

// outcome is the result of one attack over all rounds.
type outcome struct {
	tries    int
	duration time.Duration
	frames   uint64        // of the cameras that are not attacked
	lost     uint64        // frames of theirs without a result
	answer   time.Duration // longest wait of the owner of a program under attack
	resident []float64     // most resident memory of each program, in bytes
}

// rate returns the share of the frames that the cameras should have delivered.
func (o *outcome) rate(cameras int) float64 {
	return float64(o.frames) / (o.duration.Seconds() * attackCameraRate * float64(cameras))
}

// TestAttack attacks running programs in turns. No program may end, no event may be lost, and the owner is always answered; in a timed run
// the cameras that are not attacked keep their rate and the memory stays within its bound.
func TestAttack(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	var duration time.Duration
	text := os.Getenv(attackEnvironment)
	if text != "" {
		var err error
		duration, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	a := newArena(t, rand.New(rand.NewPCG(seed, 0)))
	a.timed = duration > 0
	all := attacks()
	outcomes := make([]outcome, len(all))
	rounds := 1
	if duration > 0 {
		rounds = attackRounds
		lowerPriority(t)
	}
	for range rounds {
		for i := range all {
			a.run(&all[i], &outcomes[i], duration/time.Duration(rounds*len(all)))
		}
	}
	a.end()
	table := [][]string{{"attack", "tries", "seconds", "frames", "frames lost", "share of the rate", "longest answer s"}}
	for _, p := range a.programs() {
		table[0] = append(table[0], "MB of "+p.name)
	}
	for i := range all {
		o := &outcomes[i]
		rate := o.rate(len(steadyCameras()))
		row := []string{
			all[i].name, strconv.Itoa(o.tries), fmt.Sprintf("%.0f", o.duration.Seconds()), fmt.Sprint(o.frames), fmt.Sprint(o.lost),
			fmt.Sprintf("%.4f", rate), fmt.Sprintf("%.3f", o.answer.Seconds()),
		}
		for k, p := range a.programs() {
			row = append(row, fmt.Sprintf("%.0f", o.resident[k]/1e6))
			if duration > 0 {
				assert.LessOrEqual(t, o.resident[k], p.bound, "%s: %s", all[i].name, p.name)
			}
		}
		table = append(table, row)
		if duration > 0 {
			assert.GreaterOrEqual(t, rate, attackRate, all[i].name)
			assert.LessOrEqual(t, o.answer, attackAnswer, all[i].name)
		}
	}
	var written bytes.Buffer
	require.NoError(t, csv.NewWriter(&written).WriteAll(table))
	t.Logf("%s", &written)
	if path := os.Getenv(attackTableEnvironment); path != "" && duration > 0 {
		require.NoError(t, os.WriteFile(path, written.Bytes(), 0o644))
	}
}

// run tries one attack for the duration, or a few times, and checks the programs.
func (a *arena) run(one *attack, o *outcome, duration time.Duration) {
	a.t.Logf("%s", one.name)
	before, begun := a.gate.counted(steadyCameras()), time.Now()
	for tries := 0; tries < one.tries && duration == 0 || time.Since(begun) < duration; tries++ {
		one.try(a)
		o.tries++
		if tries%50 == 0 {
			a.check(one.name, o)
		}
		time.Sleep(attackPause)
	}
	after := a.gate.counted(steadyCameras())
	o.duration += time.Since(begun)
	o.frames += after.frames - before.frames
	o.lost += after.lost - before.lost
	for len(a.open) > 0 {
		a.closeOldest()
	}
	a.stopDamage()
	a.check(one.name, o)
}

// check asserts that every program runs and answers its owner, and records how long that took and how much memory they have.
func (a *arena) check(name string, o *outcome) {
	a.t.Helper()
	if o.resident == nil {
		o.resident = make([]float64, len(a.programs()))
	}
	for i, p := range a.programs() {
		require.False(a.t, p.ended(), "%s: %s ended: %s", name, p.name, tail(p.Stderr))
		o.resident[i] = max(o.resident[i], p.resident(a.t))
		o.answer = max(o.answer, p.ask(a.t, name))
	}
	events := a.events.count()
	begun := time.Now()
	require.Eventually(a.t, func() bool { return a.events.count() > events }, programtest.Patience, 10*time.Millisecond,
		"%s: no event reaches the owner: %s", name, tail(a.gate.Stderr))
	o.answer = max(o.answer, time.Since(begun)-attackEventInterval)
}

// keep leaves a connection open, in place of the oldest.
func (a *arena) keep(conn net.Conn) {
	if len(a.open) >= attackConnections {
		a.closeOldest()
	}
	a.open = append(a.open, conn)
}

func (a *arena) closeOldest() {
	_ = a.open[0].Close()
	a.open = a.open[1:]
}

// dial connects to a program, every second time from another address of this machine. A program may refuse the connection.
func (a *arena) dial(address string) (net.Conn, bool) {
	dialer := net.Dialer{Timeout: programtest.Patience}
	if a.random.IntN(2) == 0 {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+a.random.IntN(20)))}
	}
	conn, err := dialer.DialContext(a.t.Context(), "tcp", address)
	if err != nil {
		return nil, false
	}
	_ = conn.SetDeadline(time.Now().Add(programtest.Patience))
	return conn, true
}

// send writes to a program, and either keeps the connection or reads a part of the answer and closes it.
func (a *arena) send(address string, data []byte, keep bool) {
	conn, ok := a.dial(address)
	if !ok {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // a program need not read what it refuses
	_, _ = conn.Write(data)
	if keep {
		a.keep(conn)
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(attackReadDeadline))
	_, _ = conn.Read(make([]byte, 4096))
	_ = conn.Close()
}

// bytes returns random bytes.
func (a *arena) bytes(most int) []byte {
	data := make([]byte, a.random.IntN(most+1))
	for i := range data {
		data[i] = byte(a.random.Uint32())
	}
	return data
}

// damaged returns a copy with a few changes: other bytes, a part removed, repeated or inserted, or the end missing.
func (a *arena) damaged(data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + a.random.IntN(4) {
		if len(data) == 0 {
			return a.bytes(64)
		}
		at := a.random.IntN(len(data))
		part := min(len(data), at+1+a.random.IntN(16))
		switch a.random.IntN(6) {
		case 0:
			data[at] ^= 1 << a.random.IntN(8)
		case 1:
			data[at] = []byte{0, 0x7f, 0x80, 0xff}[a.random.IntN(4)]
		case 2:
			data = append(data[:at:at], data[part:]...)
		case 3:
			data = append(data[:part:part], data[at:]...)
		case 4:
			data = append(append(data[:at:at], a.bytes(32)...), data[at:]...)
		case 5:
			data = data[:at]
		}
	}
	return data
}

// choose returns one of several values.
func choose[T any](a *arena, values ...T) T { return values[a.random.IntN(len(values))] }

// tail returns the end of what a program wrote.
func tail(text fmt.Stringer) string {
	all := text.String()
	return all[max(0, len(all)-4000):]
}

// lowerPriority lets the attacked programs, which run already, go first.
func lowerPriority(t *testing.T) {
	threads, err := filepath.Glob("/proc/self/task/*")
	require.NoError(t, err)
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		require.NoError(t, err)
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, attackDefaultNice) // the thread may have ended
	}
}
