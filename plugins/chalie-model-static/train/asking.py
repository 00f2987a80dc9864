"""Make sentences in which people ask for something, out of general words: frames of our own around WordNet.

A table fitted on dictionary and description lines alone follows the teacher well there and badly where
somebody
asks a question: it has never seen how little `could you please` means. These lines show it. They name no
tool.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

# {v} a verb phrase, {n} a noun phrase, {s} a sentence of context, {p} a place, {d} a time, {k} a number, {w}
# a name
FRAMES = """
Can you help me {v}?
Can you {v}?
Could you please {v}?
Could you {v} for me, please?
Would you {v}?
Please {v}.
Please {v} for {w}.
I need to {v}.
I need {n}.
I need help with {n}.
I want to {v}.
I want {n} for my {n2}.
I'd like to {v}.
I would like to know more about {n}.
I'm looking for {n}.
I am looking for {n} in {p}.
I'm trying to {v}. Can you assist me?
I'm interested in {n}. Do you have any recommendations?
I am curious about {n}. What can you tell me?
Is there a way to {v}?
Is there any {n} near {p}?
Is it possible to {v}?
How do I {v}?
How can I {v}?
How can I {v} {d}?
How much is {n}?
How many {n} are there in {p}?
What is {n}?
What are the best {n} in {p}?
What are some {n} for a beginner?
What's the difference between {n} and {n2}?
What do I need to {v}?
What would be a good {n} for {w}?
When is {n}?
When does the {n} start {d}?
Where can I find {n}?
Where can I get information on {n}?
Which {n} should I choose?
Which of my {n} are about {n2}?
Who is responsible for {n}?
Why does my {n} not work?
Do you know any {n}?
Do you have information about {n} in {p}?
Are there any {n} available {d}?
Show me {n}.
Show me all {n} from {d}.
Show {n} with more than {k} {n2}.
Tell me about {n}.
Tell me how to {v}.
Give me a list of {n}.
Give me some tips on how to {v}.
Give me details on {n} from {p}.
Provide me with information on {n}.
Recommend {n} for my {n2}.
Suggest some {n} that I can use {d}.
Find {n} near {p}.
Find me {n} for {d}.
Find the {n} of {w}.
Search for {n}.
Look up {n}.
Get the {n} for {p}.
Check whether the {n} is available {d}.
Let me know if there are {n} in {p}.
List every {n} that {w} has.
Compare {n} and {n2}.
Calculate the {n} of {k} {n2}.
Convert {k} {n} to {n2}.
Translate "{s}" into another language.
Remind me to {v} {d}.
Set up {n} for {d}.
Book {n} in {p} for {k} people {d}.
Order {k} {n} for {w}.
Send {n} to {w}.
Create a {n} called {w} with {k} {n2}.
Add {n} to my {n2}.
Delete the {n} of {w}.
Remove {n} from the {n2}.
Change the {n} to {k}.
Update {n} so that it has {n2}.
Turn the {n} off {d}.
Play {n}.
Explain {n} to me in simple words.
Summarise what is known about {n}.
Write a text about {n}.
I have {k} {n} and I want to {v}. What should I do?
I've been having trouble with {n}. Any advice?
I'm planning {n} in {p} {d}. Could you {v}?
I'm going to {p} {d} and need {n}.
We are {k} people and want to {v} {d}.
My {n} is {k} years old. How do I {v}?
My friend {w} wants to {v}. Do you know {n}?
{s}. Can you {v}?
{s}. I need {n}, please.
{s}, so please {v}.
Lately {s}. What {n} would you suggest?
Hi, I'd like some help to {v}.
Hey, could you tell me where to find {n}?
Hello, what is the {n} for {p} {d}?
Thanks. Now {v}.
In {p}, what {n} can I expect {d}?
As a {n2}, I want to {v}.
Before {d} I have to {v}. Can you find {n}?
""".strip().splitlines()

NAMES = [
    "Ada",
    "Ahmed",
    "Alice",
    "Amara",
    "Anna",
    "Arjun",
    "Ben",
    "Carlos",
    "Chen",
    "Chloe",
    "Daniel",
    "Diego",
    "Elena",
    "Emma",
    "Fatima",
    "Felix",
    "Grace",
    "Hana",
    "Hugo",
    "Ivan",
    "Jack",
    "James",
    "Jasmin",
    "Jonas",
    "Julia",
    "Kenji",
    "Lara",
    "Leila",
    "Liam",
    "Lin",
    "Lucas",
    "Maria",
    "Marta",
    "Mei",
    "Mohammed",
    "Nina",
    "Noah",
    "Nora",
    "Olga",
    "Omar",
    "Paul",
    "Priya",
    "Rosa",
    "Sam",
    "Sara",
    "Sofia",
    "Tariq",
    "Thomas",
    "Wei",
    "Yusuf",
    "Zoe",
]
TIMES = (
    "today",
    "tomorrow",
    "tonight",
    "this weekend",
    "next week",
    "next month",
    "this year",
    "on Monday",
    "on Friday",
    "on Saturday evening",
    "at 5 pm",
    "at noon",
    "in the morning",
    "this afternoon",
    "in March",
    "in June",
    "in October",
    "on the 3rd of May",
    "by the end of the month",
    "in two hours",
    "for the next three days",
    "last week",
    "yesterday",
    "since 2019",
    "during the holidays",
    "before Christmas",
    "on 2023-07-14",
    "from January to April",
    "every day",
    "right now",
    "as soon as possible",
)


def lines(
    seed: int,
    count: int,
    verbs: Sequence[str],
    nouns: Sequence[str],
    sentences: Sequence[str],
    places: Sequence[str],
) -> list[str]:
    """Return `count` made-up requests, the same for the same seed and words."""
    chance = random.Random(seed)
    result = []
    for _ in range(count):
        result.append(
            chance.choice(FRAMES).format(
                v=chance.choice(verbs),
                n=chance.choice(nouns),
                n2=chance.choice(nouns),
                s=chance.choice(sentences).rstrip("."),
                p=chance.choice(places),
                d=chance.choice(TIMES),
                k=chance.choice((2, 3, 4, 5, 7, 10, 12, 20, 50, 100, 250, 1000, 5000)),
                w=chance.choice(NAMES),
            )
        )
    return result
