'use strict';
// Everything shown is set as text (textContent); nothing from the data is ever read as markup.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const PAGE = 200;
  const digits = new Intl.NumberFormat('en-US');
  const make = (name, text, kind) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const swatch = (fill) => {
    const NS = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(NS, 'svg');
    svg.setAttribute('class', 'chip');
    svg.setAttribute('viewBox', '0 0 100 100');
    svg.setAttribute('aria-hidden', 'true');
    const rect = document.createElementNS(NS, 'rect');
    rect.setAttribute('width', '100');
    rect.setAttribute('height', '100');
    rect.setAttribute('class', 'f-' + fill);
    svg.append(rect);
    const pattern = { O0: 'stripes', unknown: 'dots' }[fill];
    if (pattern) {
      const over = rect.cloneNode();
      over.removeAttribute('class');
      over.setAttribute('fill', `url(#${pattern})`);
      svg.append(over);
    }
    return svg;
  };

  // A row is [name, level, bytes, kind, compiler, strength, remark]; level, kind, compiler and strength are places in
  // the shared list of words.
  const word = (index) => data.words[index];

  const table = (root, target) => {
    const rows = target.rows;
    const body = root.querySelector('tbody');
    const search = root.querySelector('input');
    const level = root.querySelector('select');
    const [back, on] = root.querySelectorAll('.pages button');
    const said = root.querySelector('[role=status]');
    const heads = [...root.querySelectorAll('thead th')];
    const lower = rows.map((row) => (row[0] + ' ' + word(row[4]) + ' ' + row[6]).toLowerCase());
    const order = new Map(data.levels.map((name, place) => [name, place]));
    let page = 0;
    let sort = { column: 1, down: false };
    let found = [];

    const key = (row, column) => {
      if (column === 0) return row[0];
      if (column === 1) return order.get(word(row[1]));
      if (column === 2) return row[2];
      if (column === 6) return row[6];
      return word(row[column]);
    };
    const compare = (a, b) => {
      const x = key(rows[a], sort.column);
      const y = key(rows[b], sort.column);
      let by = x < y ? -1 : x > y ? 1 : 0;
      if (sort.down) by = -by;
      return by || rows[b][2] - rows[a][2] || a - b;
    };
    const select = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      found = [];
      for (let i = 0; i < rows.length; i += 1) {
        if (level.value && word(rows[i][1]) !== level.value) continue;
        if (words.every((part) => lower[i].includes(part))) found.push(i);
      }
      found.sort(compare);
      page = 0;
      show();
    };
    const show = () => {
      const from = page * PAGE;
      const part = found.slice(from, from + PAGE);
      const list = document.createDocumentFragment();
      for (const i of part) {
        const row = rows[i];
        const line = make('tr');
        const name = make('th');
        name.scope = 'row';
        name.append(make('code', row[0]));
        const shown = make('td', undefined, 'keep l-' + word(row[1]));
        shown.append(swatch(target.fills[i] || word(row[1])), word(row[1]));
        line.append(name, shown, make('td', digits.format(row[2]), 'n'), make('td', word(row[3])),
          make('td', word(row[4])), make('td', word(row[5])), make('td', row[6]));
        list.append(line);
      }
      body.replaceChildren(list);
      const last = Math.min(from + PAGE, found.length);
      said.textContent = found.length
        ? `${digits.format(found.length)} of ${digits.format(rows.length)} match; ${digits.format(from + 1)} to ${digits.format(last)} shown`
        : `none of ${digits.format(rows.length)} matches`;
      back.disabled = page === 0;
      on.disabled = last >= found.length;
    };
    search.addEventListener('input', select);
    level.addEventListener('change', select);
    back.addEventListener('click', () => { page -= 1; show(); });
    on.addEventListener('click', () => { page += 1; show(); });
    heads.forEach((head, column) => {
      const text = head.textContent;
      const button = make('button', text);
      button.type = 'button';
      head.replaceChildren(button);
      button.addEventListener('click', () => {
        sort = { column, down: sort.column === column ? !sort.down : column === 2 };
        for (const other of heads) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', sort.down ? 'descending' : 'ascending');
        select();
      });
    });
    root.querySelectorAll('.controls').forEach((part) => { part.hidden = false; });
    select();
    return (name) => { search.value = name; level.value = ''; select(); };
  };

  // The map: cells are [x, y, width, height, row] in the units of the picture; a negative row is -1 - place in `rest`.
  const map = (root, target, choose) => {
    const cells = target.cells;
    const cursor = root.querySelector('.cursor');
    const said = root.parentElement.querySelector('.said');
    const svg = root.querySelector('svg');
    const box = svg.viewBox.baseVal;
    let at = -1;
    const about = (cell) => {
      if (cell[4] < 0) {
        const rest = target.rest[-1 - cell[4]];
        return `${rest[0]}, ${digits.format(rest[1])} bytes`;
      }
      const row = target.rows[cell[4]];
      return `${row[0]}: ${word(row[1])}, ${digits.format(row[2])} bytes`;
    };
    const go = (next) => {
      if (next < 0 || next >= cells.length) return;
      at = next;
      const [x, y, w, h] = cells[at];
      cursor.setAttribute('x', x);
      cursor.setAttribute('y', y);
      cursor.setAttribute('width', Math.max(w, 8));
      cursor.setAttribute('height', Math.max(h, 8));
      cursor.removeAttribute('visibility');
      said.textContent = about(cells[at]);
    };
    const under = (event) => {
      const frame = svg.getBoundingClientRect();
      const x = ((event.clientX - frame.left) / frame.width) * box.width;
      const y = ((event.clientY - frame.top) / frame.height) * box.height;
      return cells.findIndex((c) => x >= c[0] && x < c[0] + c[2] && y >= c[1] && y < c[1] + c[3]);
    };
    // The nearest cell whose middle lies in that direction; what is off the axis counts double.
    const beside = (dx, dy) => {
      if (at < 0) return 0;
      const middle = (c) => [c[0] + c[2] / 2, c[1] + c[3] / 2];
      const [x, y] = middle(cells[at]);
      let best = -1;
      let least = Infinity;
      cells.forEach((cell, i) => {
        const [a, b] = middle(cell);
        const along = (a - x) * dx + (b - y) * dy;
        if (i === at || along <= 0) return;
        const off = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
        if (along + 2 * off < least) { least = along + 2 * off; best = i; }
      });
      return best;
    };
    const pick = () => {
      if (at >= 0 && cells[at][4] >= 0) choose(target.rows[cells[at][4]][0]);
    };
    svg.addEventListener('pointermove', (event) => go(under(event)));
    svg.addEventListener('click', (event) => { go(under(event)); pick(); });
    root.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (step) go(beside(...step));
      else if (event.key === 'Home') go(target.worst);
      else if (event.key === 'Enter') pick();
      else return;
      event.preventDefault();
    });
  };

  data.targets.forEach((target, i) => {
    const units = document.getElementById('units-' + i);
    const choose = units ? table(units, target) : () => {};
    const picture = document.getElementById('map-' + i);
    if (picture) map(picture, target, choose);
  });

  // Tables that stand in the page whole: rows that do not match are hidden.
  document.querySelectorAll('[data-filter]').forEach((root) => {
    const search = root.querySelector('input');
    const said = root.querySelector('[role=status]');
    const rows = [...root.querySelectorAll('tbody tr')].map((row) => [row, row.textContent.toLowerCase()]);
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const [row, text] of rows) {
        row.hidden = !words.every((part) => text.includes(part));
        if (!row.hidden) count += 1;
      }
      said.textContent = `${digits.format(count)} of ${digits.format(rows.length)} shown`;
    };
    search.addEventListener('input', apply);
    root.querySelector('.controls').hidden = false;
    apply();
  });

  const open = () => {
    const part = location.hash && document.getElementById(location.hash.slice(1));
    if (part && part.tagName === 'DETAILS') part.open = true;
  };
  addEventListener('hashchange', open);
  open();
})();
