package mqtt

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func text(s string) func([]byte) []byte { return func(buf []byte) []byte { return append(buf, s...) } }

func TestSlotKeepsTheNewest(t *testing.T) {
	l, book := newSendQueue(), &ledger.Ledger{}
	s := &mailbox{topic: "t", queue: l, ledger: book}
	for i := range 5 {
		s.put(text(fmt.Sprint(i)))
	}
	assert.Equal(t, ledger.Account{Offered: 5, Dropped: 4, Queued: 1}, book.Read())
	now := time.Now()
	got, _ := l.take(now)
	require.Same(t, s, got)
	assert.Equal(t, "4", string(s.current))
	s.put(text("5")) // while 4 is on its way
	empty, wait := l.take(now)
	assert.Nil(t, empty, "a mailbox is sent by one sender at a time")
	assert.Negative(t, wait)
	s.settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 6, Delivered: 1, Dropped: 4, Queued: 1}, book.Read())
	l.take(now)
	assert.Equal(t, "5", string(s.current))
	s.settle(false, now)
	assert.Equal(t, ledger.Account{Offered: 6, Delivered: 1, Dropped: 5}, book.Read(), "what is not retained is lost with the connection")
	s.renew()
	assert.True(t, l.empty())
}

func TestRetainedSlotIsSentAgain(t *testing.T) {
	l, book := newSendQueue(), &ledger.Ledger{}
	s := &mailbox{topic: "t", queue: l, ledger: book, retain: true}
	s.renew()
	assert.True(t, l.empty(), "nothing to repeat yet")
	now := time.Now()
	s.put(text("a"))
	l.take(now)
	s.settle(false, now)
	assert.Equal(t, ledger.Account{Offered: 1, Queued: 1}, book.Read())
	s.renew()
	s.renew()
	l.take(now)
	assert.Equal(t, "a", string(s.current))
	assert.True(t, l.empty())
	s.settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 1, Delivered: 1}, book.Read())
	s.renew()
	l.take(now)
	assert.Equal(t, "a", string(s.current))
	s.settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 1, Delivered: 1}, book.Read(), "a repetition is no new message")
	s.put(text("b"))
	l.take(now)
	s.settle(false, now)
	s.put(text("c"))
	l.take(now)
	assert.Equal(t, "c", string(s.current))
	s.settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 3, Delivered: 2, Superseded: 1}, book.Read(), "b was owed when c came")
	for range 3 {
		s.put(text("d"))
	}
	assert.Equal(t, ledger.Account{Offered: 6, Delivered: 2, Superseded: 3, Queued: 1}, book.Read(),
		"of a retained value only the newest is wanted")
}

func TestRateLimit(t *testing.T) {
	l, book := newSendQueue(), &ledger.Ledger{}
	limited := &mailbox{topic: "limited", queue: l, ledger: book, interval: time.Second}
	free := &mailbox{topic: "free", queue: l, ledger: book}
	now := time.Now()
	limited.put(text("1"))
	l.take(now)
	limited.settle(true, now)
	limited.put(text("2"))
	limited.put(text("3"))
	free.put(text("x"))
	got, _ := l.take(now.Add(300 * time.Millisecond))
	require.Same(t, free, got, "a mailbox that waits lets others pass")
	none, wait := l.take(now.Add(300 * time.Millisecond))
	require.Nil(t, none)
	assert.Equal(t, 700*time.Millisecond, wait)
	got, _ = l.take(now.Add(time.Second))
	require.Same(t, limited, got)
	assert.Equal(t, "3", string(limited.current))
}

func TestSlotsConcurrently(t *testing.T) {
	l, book := newSendQueue(), &ledger.Ledger{}
	var group sync.WaitGroup
	const each = 5000
	for i := range 4 {
		s := &mailbox{topic: fmt.Sprint(i), queue: l, ledger: book, retain: i%2 == 0}
		group.Go(func() {
			for n := range each {
				s.put(text(fmt.Sprintf("%08d", n)))
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	last := map[*mailbox]string{}
	for finished := false; !finished || !l.empty(); {
		finished = isClosed(done)
		if s, _ := l.take(time.Now()); s != nil {
			require.Less(t, last[s], string(s.current))
			last[s] = string(s.current)
			s.settle(true, time.Now())
		}
	}
	a := book.Read()
	assert.Equal(t, uint64(4*each), a.Offered)
	assert.Equal(t, a.Offered, a.Delivered+a.Superseded+a.Dropped)
	assert.Zero(t, a.Queued)
	for _, newest := range last {
		assert.Equal(t, fmt.Sprintf("%08d", each-1), newest, "the newest always arrives")
	}
}

func TestMessagesAreCopied(t *testing.T) {
	l := newSendQueue()
	s := &mailbox{topic: "t", queue: l, ledger: &ledger.Ledger{}}
	d := frame("cam0", 1)
	want := d.AppendJSON(nil, "gate")
	message := append([]byte{}, want...)
	s.putBytes(message)
	clear(message)
	l.take(time.Now())
	packet := s.appendPacket(nil)
	assert.Equal(t, string(want), string(packet[len(packet)-len(want):]))
}

func TestPacketWithLongBody(t *testing.T) {
	s := &mailbox{topic: "a/b", current: make([]byte, 300), retain: true}
	packet := s.appendPacket(nil)
	assert.Equal(t, []byte{0x31, 0xb1, 0x02, 0, 3, 'a', '/', 'b'}, packet[:8])
	assert.Len(t, packet, 8+300)
}

func TestDetectionsHandOffDoesNotAllocate(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	require.NoError(t, c.Open())
	defer c.Close()
	d := frame("cam0", 1)
	json := d.AppendJSON(nil, "gate")
	c.Detections("cam0", json)
	c.Detections("cam0", json)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		json = d.AppendJSON(json[:0], "gate")
		c.Detections("cam0", json)
	}))
}

func TestTooManyTopics(t *testing.T) {
	c := testClient("tcp://127.0.0.1:1")
	require.NoError(t, c.Open())
	defer c.Close()
	for i := range topicLimit + 10 {
		c.Count("cam0", fmt.Sprint(i), i)
	}
	a := balanced(t, c)
	assert.Equal(t, ledger.Account{Offered: topicLimit + 10, Dropped: 10, Queued: topicLimit}, a.State)
	c.Status(&payload.Status{})
	assert.Equal(t, uint64(topicLimit+1), balanced(t, c).State.Queued, "the device's own topics always have room")
}
