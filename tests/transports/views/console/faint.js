// Texts whose contrast to what is under them is too low, for people who see little.
[...document.querySelectorAll("main p, main td, main th, main span, main button, main h2, main dd, nav a")]
    .filter((each) => each.checkVisibility() && each.innerText.trim() && !each.disabled)
    .map((each) => {
        const linear = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        const light = (color) => {
            const [red, green, blue] = color.match(/[\d.]+/g).map((each) => linear(each / 255));
            return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        };
        let under = each;
        while (under && getComputedStyle(under).backgroundColor === "rgba(0, 0, 0, 0)") under = under.parentElement;
        const ground = getComputedStyle(under ?? document.body).backgroundColor;
        const [one, other] = [light(getComputedStyle(each).color), light(ground)];
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        return [contrast, each.innerText.slice(0, 40), each.className];
    })
    .filter(([contrast]) => contrast < 4.5);
