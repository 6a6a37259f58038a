package mqtt

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
)

func text(s string) func([]byte) []byte { return func(buf []byte) []byte { return append(buf, s...) } }

func TestABoxKeepsTheNewest(t *testing.T) {
	l, book := newMailboxQueue(), &ledger.Ledger{}
	s := &mailbox{Topic: "t", Queue: l, Ledger: book}
	for i := range 5 {
		s.Put(text(fmt.Sprint(i)))
	}
	assert.Equal(t, ledger.Account{Offered: 5, Dropped: 4, Queued: 1}, book.Read())
	now := time.Now()
	got, _ := l.Take(now)
	require.Same(t, s, got)
	assert.Equal(t, "4", string(s.current))
	s.Put(text("5")) // while 4 is on its way
	empty, wait := l.Take(now)
	assert.Nil(t, empty, "a mailbox is sent by one sender at a time")
	assert.Negative(t, wait)
	s.Settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 6, Delivered: 1, Dropped: 4, Queued: 1}, book.Read())
	l.Take(now)
	assert.Equal(t, "5", string(s.current))
	s.Settle(false, now)
	assert.Equal(t, ledger.Account{Offered: 6, Delivered: 1, Dropped: 5}, book.Read(), "what is not retained is lost with the connection")
	s.Renew()
	assert.Zero(t, l.Len())
}

func TestARetainedBoxIsSentAgain(t *testing.T) {
	l, book := newMailboxQueue(), &ledger.Ledger{}
	s := &mailbox{Topic: "t", Queue: l, Ledger: book, Retain: true}
	s.Renew()
	assert.Zero(t, l.Len(), "nothing to repeat yet")
	now := time.Now()
	s.Put(text("a"))
	l.Take(now)
	s.Settle(false, now)
	assert.Equal(t, ledger.Account{Offered: 1, Queued: 1}, book.Read())
	s.Renew()
	s.Renew()
	l.Take(now)
	assert.Equal(t, "a", string(s.current))
	assert.Zero(t, l.Len())
	s.Settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 1, Delivered: 1}, book.Read())
	s.Renew()
	l.Take(now)
	assert.Equal(t, "a", string(s.current))
	s.Settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 1, Delivered: 1}, book.Read(), "a repetition is no new message")
	s.Put(text("b"))
	l.Take(now)
	s.Settle(false, now)
	s.Put(text("c"))
	l.Take(now)
	assert.Equal(t, "c", string(s.current))
	s.Settle(true, now)
	assert.Equal(t, ledger.Account{Offered: 3, Delivered: 2, Superseded: 1}, book.Read(), "b was owed when c came")
	for range 3 {
		s.Put(text("d"))
	}
	assert.Equal(t, ledger.Account{Offered: 6, Delivered: 2, Superseded: 3, Queued: 1}, book.Read(),
		"of a retained value only the newest is wanted")
}

func TestRateLimit(t *testing.T) {
	l, book := newMailboxQueue(), &ledger.Ledger{}
	limited := &mailbox{Topic: "limited", Queue: l, Ledger: book, Interval: time.Second}
	free := &mailbox{Topic: "free", Queue: l, Ledger: book}
	now := time.Now()
	limited.Put(text("1"))
	l.Take(now)
	limited.Settle(true, now)
	limited.Put(text("2"))
	limited.Put(text("3"))
	free.Put(text("x"))
	got, _ := l.Take(now.Add(300 * time.Millisecond))
	require.Same(t, free, got, "a mailbox that waits lets others pass")
	none, wait := l.Take(now.Add(300 * time.Millisecond))
	require.Nil(t, none)
	assert.Equal(t, 700*time.Millisecond, wait)
	got, _ = l.Take(now.Add(time.Second))
	require.Same(t, limited, got)
	assert.Equal(t, "3", string(limited.current))
}

// TestTheFirstObjectDoesNotWait: of an interval, only changes that nobody misses wait for its end.
func TestTheFirstObjectDoesNotWait(t *testing.T) {
	l := newMailboxQueue()
	s := &mailbox{Topic: "count", Queue: l, Ledger: &ledger.Ledger{}, Retain: true, Interval: time.Minute}
	now := time.Now()
	send := func(at time.Time) string {
		got, _ := l.Take(at)
		if got == nil {
			return "nothing"
		}
		sent := string(got.Message())
		got.Settle(true, at)
		return sent
	}
	s.PutNumber(0)
	assert.Equal(t, "0", send(now))
	s.PutNumber(1)
	assert.Equal(t, "1", send(now), "the first object")
	s.PutNumber(2)
	assert.Equal(t, "nothing", send(now))
	s.PutNumber(0)
	assert.Equal(t, "nothing", send(now.Add(59*time.Second)))
	assert.Equal(t, "0", send(now.Add(time.Minute)), "the newest")

	now = now.Add(time.Minute)
	s.PutNumber(3)
	got, _ := l.Take(now)
	require.Same(t, s, got)
	s.PutNumber(2) // while 3 is on its way
	got.Settle(true, now)
	assert.Equal(t, "nothing", send(now))
	<-l.Wake
	s.PutUrgent("0")
	<-l.Wake // the sender sleeps until the interval is over
	assert.Equal(t, "0", send(now), "the camera is away")
	s.Renew()
	assert.Equal(t, "0", send(now), "a new connection")

	s.PutNumber(1)
	got, _ = l.Take(now)
	s.PutUrgent("0")
	got.Settle(true, now)
	assert.Equal(t, "0", send(now), "put while the other was on its way")
}

func TestBoxesConcurrently(t *testing.T) {
	l, book := newMailboxQueue(), &ledger.Ledger{}
	var group sync.WaitGroup
	const each = 5000
	for i := range 4 {
		s := &mailbox{Topic: fmt.Sprint(i), Queue: l, Ledger: book, Retain: i%2 == 0}
		group.Go(func() {
			for n := range each {
				s.Put(text(fmt.Sprintf("%08d", n)))
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	last := map[*mailbox]string{}
	for finished := false; !finished || l.Len() > 0; {
		select {
		case <-done:
			finished = true
		default:
		}
		if s, _ := l.Take(time.Now()); s != nil {
			require.Less(t, last[s], string(s.current))
			last[s] = string(s.current)
			s.Settle(true, time.Now())
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
	l := newMailboxQueue()
	s := &mailbox{Topic: "t", Queue: l, Ledger: &ledger.Ledger{}}
	want := []byte("a message")
	message := append([]byte{}, want...)
	s.PutBytes(message)
	clear(message)
	l.Take(time.Now())
	packet := s.AppendPacket(nil)
	assert.Equal(t, string(want), string(packet[len(packet)-len(want):]))
}

func TestPacketWithLongBody(t *testing.T) {
	s := &mailbox{Topic: "a/b", current: make([]byte, 300), Retain: true}
	packet := s.AppendPacket(nil)
	assert.Equal(t, []byte{0x31, 0xb1, 0x02, 0, 3, 'a', '/', 'b'}, packet[:8])
	assert.Len(t, packet, 8+300)
}
