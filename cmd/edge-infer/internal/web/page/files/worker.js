// The service worker shows notifications while the page is closed, and opens the page when one is clicked.
self.addEventListener("push", (event) => {
  const { title, text, tag } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body: text, tag, icon: "/files/icon.svg" }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow("/#events"));
});
