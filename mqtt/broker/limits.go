package broker

import (
	"cmp"
	"time"
)

// Limits bound the resources of clients. Zero means the default.
type Limits struct {
	Login           time.Duration // time from connection to login, 5 s
	Write           time.Duration // how long a client may stop reading, 5 s; it delays publishers meanwhile
	Connect         int           // bytes of the CONNECT packet, 16 KiB
	Packet          int           // bytes of a message, 4 MiB
	Inbound         int64         // bytes of large packets being received at one time, 16 MiB
	Connections     int           // open at one time, 256
	Unauthenticated int           // connections before the login, 64; one more closes the oldest

	Subscriptions int           // of one client, 1024
	Sessions      int           // connected clients and stored sessions, 1024
	SessionExpiry time.Duration // how long a disconnected client's session is kept on request, 24 h

	Queued int64 // bytes of messages that wait for acknowledgement or for a blocked connection, of all clients, 16 MiB

	Rate int64 // bytes per second that clients make the broker copy, of all addresses, 16 MiB

	RetainedBytes    int64 // topics and payloads, 32 MiB; messages over this or the next limit are forwarded but not retained
	RetainedMessages int   // 20,000
}

func (l *Limits) setDefaults() {
	l.Login = cmp.Or(l.Login, 5*time.Second)
	l.Write = cmp.Or(l.Write, 5*time.Second)
	l.Connect = cmp.Or(l.Connect, 16<<10)
	l.Packet = cmp.Or(l.Packet, 4<<20)
	l.Inbound = cmp.Or(l.Inbound, 16<<20)
	l.Connections = cmp.Or(l.Connections, 256)
	l.Unauthenticated = cmp.Or(l.Unauthenticated, 64)
	l.Subscriptions = cmp.Or(l.Subscriptions, 1024)
	l.Sessions = cmp.Or(l.Sessions, 1024)
	l.SessionExpiry = cmp.Or(l.SessionExpiry, 24*time.Hour)
	l.Queued = cmp.Or(l.Queued, 16<<20)
	l.Rate = cmp.Or(l.Rate, 16<<20)
	l.RetainedBytes = cmp.Or(l.RetainedBytes, 32<<20)
	l.RetainedMessages = cmp.Or(l.RetainedMessages, 20_000)
}
