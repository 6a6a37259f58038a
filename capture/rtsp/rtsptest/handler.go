package rtsptest

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/liberrors"
)

// handler answers the clients. Its methods are called from goroutines of connections and sessions.
type handler struct {
	server *Server

	mu    sync.Mutex
	seen  map[visit]bool
	plays map[*gortsplib.ServerSession]*play
}

// visit is a connection that asked for a path.
type visit struct {
	connection *gortsplib.ServerConn
	path       *path
}

// play is a session that plays.
type play struct {
	path   *path
	joined bool        // the client receives what is sent
	end    *time.Timer // closes the connection; nil without Faults.CloseAfter
}

// path returns the path of a name such as /3, nil if there is none. It waits until the server is complete.
func (h *handler) path(name string) *path {
	select {
	case <-h.server.ready:
	case <-h.server.ctx.Done():
		return nil
	}
	number, err := strconv.Atoi(strings.Trim(name, "/"))
	if err != nil || number < 0 || number >= len(h.server.paths) {
		return nil
	}
	return h.server.paths[number]
}

func (h *handler) answer(c *gortsplib.ServerConn, request *base.Request, name string) (*base.Response, *gortsplib.ServerStream, error) {
	p := h.path(name)
	if p == nil {
		return &base.Response{StatusCode: base.StatusNotFound}, nil, nil
	}
	h.visited(visit{c, p})
	if h.server.User != "" && !c.VerifyCredentials(request, h.server.User, h.server.Password) {
		return &base.Response{StatusCode: base.StatusUnauthorized}, nil, liberrors.ErrServerAuth{}
	}
	return &base.Response{StatusCode: base.StatusOK}, p.stream, nil
}

// visited counts a connection once for each path.
func (h *handler) visited(v visit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[v] {
		return
	}
	if h.seen == nil {
		h.seen = map[visit]bool{}
	}
	h.seen[v] = true
	v.path.connected()
}

// OnDescribe implements gortsplib.ServerHandlerOnDescribe.
func (h *handler) OnDescribe(c *gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return h.answer(c.Conn, c.Request, c.Path)
}

// OnSetup implements gortsplib.ServerHandlerOnSetup.
func (h *handler) OnSetup(c *gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return h.answer(c.Conn, c.Request, c.Path)
}

// OnPlay implements gortsplib.ServerHandlerOnPlay.
func (h *handler) OnPlay(c *gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	p := h.path(c.Path)
	if p == nil {
		return &base.Response{StatusCode: base.StatusNotFound}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.plays == nil {
		h.plays = map[*gortsplib.ServerSession]*play{}
	}
	if h.plays[c.Session] == nil {
		h.plays[c.Session] = &play{path: p}
	}
	return &base.Response{StatusCode: base.StatusOK}, nil
}

// OnResponse implements gortsplib.ServerHandlerOnResponse. It follows OnPlay. The client receives packets from now on, so that it does not
// miss the beginning of the key frame that the path waits for.
func (h *handler) OnResponse(c *gortsplib.ServerConn, _ *base.Response) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.plays[c.Session()]
	if p == nil || p.joined {
		return
	}
	p.joined = true
	p.path.join()
	if after := h.server.Faults.CloseAfter; after > 0 {
		p.end = time.AfterFunc(after, c.Close)
	}
}

// OnSessionClose implements gortsplib.ServerHandlerOnSessionClose.
func (h *handler) OnSessionClose(c *gortsplib.ServerHandlerOnSessionCloseCtx) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.plays[c.Session]
	if p == nil {
		return
	}
	delete(h.plays, c.Session)
	if p.joined {
		p.path.leave()
	}
	if p.end != nil {
		p.end.Stop()
	}
}

// OnConnClose implements gortsplib.ServerHandlerOnConnClose.
func (h *handler) OnConnClose(c *gortsplib.ServerHandlerOnConnCloseCtx) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.seen {
		if v.connection == c.Conn {
			delete(h.seen, v)
		}
	}
}

// OnStreamWriteError implements gortsplib.ServerHandlerOnStreamWriteError: the client is too slow for a packet.
func (h *handler) OnStreamWriteError(c *gortsplib.ServerHandlerOnStreamWriteErrorCtx) {
	h.mu.Lock()
	p := h.plays[c.Session]
	h.mu.Unlock()
	if p != nil {
		p.path.dropped()
	}
}
