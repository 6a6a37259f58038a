// el creates an element. Properties are set on it, those that start with aria- or data- are attributes, and children are text or elements.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "for" || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// palette are class colours that are distinct on bright and dark images.
const palette = ["#2dd4bf", "#fb923c", "#818cf8", "#f472b6", "#a3e635", "#c084fc", "#fb7185", "#4ade80", "#d6a77a", "#5eead4"];

export function colour(number) {
  return palette[((number % palette.length) + palette.length) % palette.length];
}

export function milliseconds(value) {
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(1)} ms`;
}

export function duration(seconds) {
  const days = Math.floor(seconds / 86400);
  const hours = Math.floor((seconds % 86400) / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds)} s`;
}

export function clock(time) {
  return new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

// quantile returns a quantile of a sorted list.
export function quantile(sorted, share) {
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

// counted returns a number of objects in English, such as "3 persons".
export function counted(count, label) {
  if (count === 1) return `1 ${label}`;
  return `${count} ${label}${/(s|x|ch|sh)$/.test(label) ? "es" : "s"}`;
}

// day returns the date of a time in the browser's time zone, as in 2026-11-25.
export function day(time) {
  const at = new Date(time);
  return [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

// when returns a date and a time in the browser's time zone.
export function when(time) {
  const date = day(time) === day(Date.now()) ? "today" : new Date(time).toLocaleDateString([], { dateStyle: "medium" });
  return `${date}, ${clock(time)}`;
}

// period returns two times with their dates, the second one without where it is the same.
export function period(start, end) {
  if (clock(start) === clock(end) && day(start) === day(end)) return when(start);
  return `${when(start)} – ${day(start) === day(end) ? clock(end) : when(end)}`;
}

// options fills a select element behind its first option.
export function options(select, names) {
  const { value } = select;
  if (names.join("\n") === [...select.options].slice(1).map((o) => o.value).join("\n")) return;
  select.replaceChildren(select.options[0], ...names.map((name) => el("option", { value: name }, name)));
  if (names.includes(value)) select.value = value;
}
