package mqtt

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// faultTime is how long each fault lasts: a moment, or what EDGE_INFER_FAULTS says (60s for the full runs). Only a full run holds the frame
// loop to its bars, because it is the only one that has the machine to itself.
func faultTime(t testing.TB) (d time.Duration, full bool) {
	t.Helper()
	text := os.Getenv("EDGE_INFER_FAULTS")
	if text == "" {
		return 600 * time.Millisecond, false
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d, true
}

// handOff is what the frame loop saw.
type handOff struct {
	rate     float64 // frames per second
	p50, p99 time.Duration
	longest  time.Duration
}

// beside runs something while the test goes on, and waits for it at the end.
func beside(t testing.TB, run func()) {
	var group sync.WaitGroup
	group.Go(run)
	t.Cleanup(group.Wait)
}

// runFrames hands over a frame of 10 objects 240 times a second, as 8 cameras would, and an event with every 24th.
func runFrames(c *Client, d time.Duration) handOff {
	const rate = 240
	frames := make([]*payload.Detections, 8)
	for i := range frames {
		frames[i] = frame("cam"+string(rune('0'+i)), 0)
		for range 9 {
			frames[i].Objects = append(frames[i].Objects, frames[i].Objects[0])
		}
	}
	event := &payload.Event{Type: "new", Camera: "cam0", Label: "person", Track: 1}
	var encoded []byte
	var took []time.Duration
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * time.Second / rate)
		if due.Sub(start) >= d {
			break
		}
		time.Sleep(time.Until(due))
		f := frames[n%len(frames)]
		f.Sequence = uint64(n)
		begin := time.Now()
		encoded = f.AppendJSON(encoded[:0], c.Device)
		c.Detections(f.Camera, encoded)
		if n%24 == 0 {
			c.Event(event)
		}
		took = append(took, time.Since(begin))
	}
	h := handOff{rate: float64(len(took)) / time.Since(start).Seconds()}
	slices.Sort(took)
	h.p50, h.p99, h.longest = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	return h
}

// wakeFloor is the 99th percentile of waking a goroutine at the frame rate, which is the part of a hand-off that no code of ours can
// shorten: on a virtual machine with an idle CPU it alone may take longer than the bar of 20 us.
func wakeFloor(d time.Duration) time.Duration {
	wake := make(chan struct{}, 1)
	defer close(wake)
	go func() {
		for range wake {
		}
	}()
	var took []time.Duration
	for begin := time.Now(); time.Since(begin) < d; {
		time.Sleep(time.Second / 240)
		start := time.Now()
		select {
		case wake <- struct{}{}:
		default:
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// stallingBroker accepts; it answers CONNECT when told to, reads nothing more, and stays silent.
func stallingBroker(t testing.TB, answer bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	conns := []net.Conn{}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			conn.(*net.TCPConn).SetReadBuffer(4096)
			if answer {
				go func() {
					io.ReadFull(conn, make([]byte, 2))
					conn.Write([]byte{0x20, 2, 0, 0})
				}()
			}
		}
	}()
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			conn.Close()
		}
	})
	return "tcp://" + l.Addr().String()
}

// TestFaults runs the frame loop through everything that can happen to a broker. It must never be held up, and every message must be
// accounted for. EDGE_INFER_FAULTS=60s go test -run TestFaults -v -timeout 30m ./mqtt is the full run. What it logs of time and memory is
// judged by `make bench`. It is as long as its list of faults.
func TestFaults(t *testing.T) {
	d, full := faultTime(t)
	authority := mqtttest.NewAuthority(t)
	for _, fault := range []struct {
		name string
		// start makes the broker's trouble and the client; it returns the error that the client must show at the end.
		start func(t *testing.T) (*Client, string)
		// delivers says whether the events must all have arrived in the end.
		delivers bool
	}{
		{"up", func(t *testing.T) (*Client, string) { return testClient(startBroker(t, "").URL()), "" }, true},
		{"killed and back", func(t *testing.T) (*Client, string) {
			broker := startBroker(t, "")
			broker.Address = broker.Addr()
			beside(t, func() {
				time.Sleep(d / 4)
				broker.Close()
				time.Sleep(d / 2)
				broker.Open()
			})
			return testClient("tcp://" + broker.Address), ""
		}, true},
		{"flapping", func(t *testing.T) (*Client, string) {
			broker := startBroker(t, "")
			broker.Address = broker.Addr()
			period := min(2*time.Second, d/10)
			beside(t, func() {
				end := time.Now().Add(d)
				for up := true; !up || time.Now().Before(end); {
					time.Sleep(period)
					if up {
						up = broker.Close() != nil
					} else {
						up = broker.Open() == nil
					}
				}
			})
			return testClient(broker.URL()), ""
		}, true},
		{"black hole", func(t *testing.T) (*Client, string) { return testClient(stallingBroker(t, true)), "*" }, false},
		{"silence", func(t *testing.T) (*Client, string) { return testClient(stallingBroker(t, false)), "i/o timeout" }, false},
		{"refused", func(t *testing.T) (*Client, string) {
			return testClient("tcp://" + mqtttest.FreeAddress(t)), "connection refused (nothing listens there, check that the broker runs and the port)"
		}, false},
		{"no such host", func(t *testing.T) (*Client, string) {
			return testClient("tcp://broker.invalid"), "(the host name does not resolve, check its spelling and the network)"
		}, false},
		{"wrong password", func(t *testing.T) (*Client, string) {
			b := &embedded.Broker{Address: "127.0.0.1:0", User: "edge", Password: "right", Logger: mqtttest.Discard()}
			require.NoError(t, b.Open())
			t.Cleanup(func() { b.Close() })
			c := testClient(b.URL())
			c.User, c.Password = "edge", "wrong"
			return c, "(check user and password, and what the broker allows this client)"
		}, false},
		{"expired certificate", func(t *testing.T) (*Client, string) {
			files := authority.Issue(t, "expired", time.Now().Add(-time.Hour))
			b := &embedded.Broker{
				Address: "127.0.0.1:0", TLS: credentials.TLS{CertificateFile: files.CertificateFile, KeyFile: files.KeyFile},
				Logger: mqtttest.Discard(),
			}
			require.NoError(t, b.Open())
			t.Cleanup(func() { b.Close() })
			c := testClient(b.URL())
			c.TLS.CAFile = files.CAFile
			return c, "(the broker's certificate is out of date, or this machine's clock is wrong)"
		}, false},
		{"disk full and broker away", func(t *testing.T) (*Client, string) {
			address := mqtttest.FreeAddress(t)
			c := testClient("tcp://" + address)
			fillDisk(t, d/4, d/2)
			broker := &embedded.Broker{Address: address, Logger: mqtttest.Discard()}
			t.Cleanup(func() { broker.Close() })
			beside(t, func() {
				time.Sleep(d * 2 / 3)
				assert.Contains(t, c.Connection().Spool, "file too large")
				time.Sleep(d / 6)
				assert.NoError(t, broker.Open())
			})
			return c, ""
		}, true},
	} {
		t.Run(fault.name, func(t *testing.T) {
			mqtttest.NoLeaks(t)
			c, problem := fault.start(t)
			c.Spool.Directory = t.TempDir()
			stop := start(t, c)
			var floor time.Duration
			if full {
				floor = wakeFloor(d / 6)
			}
			before := memory(t)
			h := runFrames(c, d)
			grown := memory(t) - before
			if fault.delivers {
				require.Eventually(t, func() bool { return c.Accounting().Events.Queued == 0 }, mqtttest.Patience, 10*time.Millisecond)
			}
			a := balanced(t, c)
			assert.Equal(t, uint64((int(d.Seconds()*240)+23)/24), a.Events.Offered)
			if fault.delivers {
				assert.Zero(t, a.Events.Dropped)
			}
			switch problem {
			case "":
				require.Eventually(t, func() bool { return c.Connection().Connected }, mqtttest.Patience, 10*time.Millisecond)
			case "*":
			default:
				require.Eventually(t, func() bool { return c.Connection().Error != "" }, mqtttest.Patience, 10*time.Millisecond)
				assert.Contains(t, c.Connection().Error, problem)
			}
			assert.Less(t, stop(), unhindered)
			balanced(t, c)
			t.Logf("%s: %.2f fps, hand-off p50 %v, p99 %v (a wake alone %v), longest %v, memory %+d KiB, detections %+v, events %+v",
				fault.name, h.rate, h.p50, h.p99, floor, h.longest, grown>>10, a.Detections, a.Events)
		})
	}
}

// TestBlackHole fills every buffer between the client and a broker that does not read: paho alone blocks its caller there for ever.
func TestBlackHole(t *testing.T) {
	mqtttest.NoLeaks(t)
	c := testClient(stallingBroker(t, true))
	stop := start(t, c)
	waitConnected(t, c)
	f := frame("cam0", 0)
	for range 499 {
		f.Objects = append(f.Objects, f.Objects[0])
	}
	deadline := time.Now().Add(mqtttest.Patience)
	for c.Accounting().Detections.Dropped < 1000 || c.Connection().Connected {
		require.True(t, time.Now().Before(deadline), "%+v %+v", c.Accounting(), c.Connection())
		send(c, f)
		c.Event(&payload.Event{Type: "new", Camera: "cam0"})
		time.Sleep(10 * time.Microsecond)
	}
	assert.NotEmpty(t, c.Connection().Error)
	a := balanced(t, c)
	assert.Zero(t, a.Events.Delivered)
	assert.Less(t, stop(), unhindered)
	balanced(t, c)
}

// TestHangingBrokerDoesNotDelayTheEnd stops while the connection is up and nothing is read any more.
func TestHangingBrokerDoesNotDelayTheEnd(t *testing.T) {
	mqtttest.NoLeaks(t)
	c := testClient(stallingBroker(t, true))
	c.WriteTimeout, c.AckTimeout, c.KeepAlive = time.Hour, time.Hour, time.Hour
	stop := start(t, c)
	waitConnected(t, c)
	jpeg := make([]byte, 16<<20)
	c.Snapshot("cam0", "person", jpeg) // more than the buffers hold
	c.Image("cam0", jpeg)
	for range 100 {
		c.Event(&payload.Event{Type: "new", Camera: "cam0"})
	}
	// One of the two images is being written.
	require.Eventually(t, func() bool { return c.qos0.Len() == 1 }, mqtttest.Patience, time.Millisecond)
	assert.Less(t, stop(), unhindered)
	a := balanced(t, c)
	assert.Equal(t, ledger.Account{Offered: 100, Dropped: 100}, a.Events, "they were in memory only")
}

// TestUnacknowledged has a broker that reads everything, answers pings, and acknowledges no message.
func TestUnacknowledged(t *testing.T) {
	mqtttest.NoLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				for {
					p, err := packets.ReadPacket(conn)
					if err != nil {
						return
					}
					switch p.(type) {
					case *packets.ConnectPacket:
						packets.NewControlPacket(packets.Connack).Write(conn)
					case *packets.PingreqPacket:
						packets.NewControlPacket(packets.Pingresp).Write(conn)
					}
				}
			})
		}
	})
	t.Cleanup(group.Wait)
	t.Cleanup(func() { l.Close() })
	c := testClient("tcp://" + l.Addr().String())
	c.AckTimeout = 100 * time.Millisecond
	stop := start(t, c)
	c.Event(&payload.Event{Type: "new", Camera: "cam0"})
	require.Eventually(t, func() bool { return c.Connection().Error == "broker acknowledged nothing for 100ms" }, mqtttest.Patience,
		time.Millisecond)
	assert.Equal(t, ledger.Account{Offered: 1, Queued: 1}, balanced(t, c).Events)
	assert.Less(t, stop(), unhindered)
	assert.Equal(t, ledger.Account{Offered: 1, Dropped: 1}, balanced(t, c).Events)
}

// TestAbandonWaitsForNoBroker abandons a client whose Close waits for a broker that reads nothing. Events on disk are still queued
// afterwards, all others are dropped and counted.
func TestAbandonWaitsForNoBroker(t *testing.T) {
	for name, directory := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			c := testClient(stallingBroker(t, true))
			c.Spool.Directory, c.Spool.Commit = directory, time.Hour
			c.WriteTimeout, c.AckTimeout, c.KeepAlive = time.Hour, time.Hour, time.Hour
			stop := start(t, c)
			waitConnected(t, c)
			for range 100 {
				c.Event(&payload.Event{Type: "new", Camera: "cam0"})
			}
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				stop()
			}()
			<-c.closing.Done()
			require.NoError(t, c.Abandon())
			select {
			case <-closed:
				t.Error("it waited for Close")
			default:
			}
			c.Event(&payload.Event{Type: "end", Camera: "cam0"}) // of a frame loop that does not know yet
			want := ledger.Account{Offered: 101, Dropped: 101}
			if directory != "" {
				want = ledger.Account{Offered: 101, Dropped: 1, Queued: 100}
			}
			assert.Equal(t, want, balanced(t, c).Events)
			<-closed
			assert.Equal(t, want, balanced(t, c).Events)
			require.NoError(t, new(Client).Abandon())
		})
	}
}

// memory is the resident set in bytes.
func memory(t testing.TB) int64 {
	t.Helper()
	var pages, resident int64
	data, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	_, err = fmt.Sscan(string(data), &pages, &resident)
	require.NoError(t, err)
	return resident * int64(os.Getpagesize())
}

// fillDisk lets every write to a file fail after a while, and work again later.
func fillDisk(t testing.TB, after, length time.Duration) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	restore := func() { syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old) }
	full := time.AfterFunc(after, func() { syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: old.Max}) })
	free := time.AfterFunc(after+length, restore)
	t.Cleanup(func() {
		full.Stop()
		free.Stop()
		restore()
	})
}
