package spool

// entry locates a queued record.
type entry struct {
	number uint64
	at     int64 // milliseconds of the queue's clock
	offset uint32
	size   uint32
}

// queue is a first-in first-out list of entries.
type queue struct {
	entries []entry
	head    int
	bytes   int64
}

func (q *queue) len() int      { return len(q.entries) - q.head }
func (q *queue) live() []entry { return q.entries[q.head:] }

func (q *queue) push(e entry) {
	if q.head > 1024 && q.head > len(q.entries)/2 {
		n := copy(q.entries, q.entries[q.head:])
		q.entries, q.head = q.entries[:n], 0
	}
	q.entries = append(q.entries, e)
	q.bytes += int64(e.size)
}

func (q *queue) pop() entry {
	e := q.entries[q.head]
	q.head++
	q.bytes -= int64(e.size)
	if q.head == len(q.entries) {
		q.entries, q.head = q.entries[:0], 0
	}
	return e
}

// after returns the first entry with a number greater than number.
func (q *queue) after(number uint64) (entry, bool) {
	live := q.live()
	low, high := 0, len(live)
	for low < high {
		middle := (low + high) / 2
		if live[middle].number > number {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if low == len(live) {
		return entry{}, false
	}
	return live[low], true
}

// remove deletes one entry.
func (q *queue) remove(number uint64) bool {
	for i, e := range q.live() {
		if e.number == number {
			q.bytes -= int64(e.size)
			at := q.head + i
			q.entries = append(q.entries[:at], q.entries[at+1:]...)
			return true
		}
	}
	return false
}
