package broker

import (
	"cmp"
	"time"
)

// Limits bound what clients may take of the machine. Zero means the default.
type Limits struct {
	Login           time.Duration // from the connection to the login, 5 s
	Write           time.Duration // how long a client may stop reading, 5 s; meanwhile it holds up whoever publishes to it
	Connect         int           // bytes of the CONNECT packet, 16 KiB
	Packet          int           // bytes of a message, 4 MiB
	Inbound         int64         // bytes of large packets that are being received at one time, 64 MiB
	Connections     int           // open at one time, 256
	Unauthenticated int           // of those, before the login, 64: one more ends the oldest of them

	Subscriptions int           // of one client, 1024
	Sessions      int           // clients that are connected or remembered, 1024
	SessionExpiry time.Duration // how long a client that left is remembered when it asks for that, 24 h

	RetainedBytes    int64 // topics and payloads, 64 MiB; what is over one of these two is passed on and not kept
	RetainedMessages int   // 20,000
}

func (l *Limits) setDefaults() {
	l.Login = cmp.Or(l.Login, 5*time.Second)
	l.Write = cmp.Or(l.Write, 5*time.Second)
	l.Connect = cmp.Or(l.Connect, 16<<10)
	l.Packet = cmp.Or(l.Packet, 4<<20)
	l.Inbound = cmp.Or(l.Inbound, 64<<20)
	l.Connections = cmp.Or(l.Connections, 256)
	l.Unauthenticated = cmp.Or(l.Unauthenticated, 64)
	l.Subscriptions = cmp.Or(l.Subscriptions, 1024)
	l.Sessions = cmp.Or(l.Sessions, 1024)
	l.SessionExpiry = cmp.Or(l.SessionExpiry, 24*time.Hour)
	l.RetainedBytes = cmp.Or(l.RetainedBytes, 64<<20)
	l.RetainedMessages = cmp.Or(l.RetainedMessages, 20_000)
}
